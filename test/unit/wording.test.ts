import { expect, test } from "bun:test";
import { type RepositoryFile, repositoryFiles } from "../support/repository-files.ts";

/** Other words for what we call session, clone, run and VMM. One word per thing keeps code and docs searchable. */
const SYNONYMS = /(?<![a-z])(sandbox|container|instance|worker|job|box)(?!of\b)[a-z]*/gi;

/** Places where these words mean something else: other people's products, names and options. */
const LEGITIMATE = [
  /no container engine/gi,
  /["'`(\s]-sandbox\b/g,
  /sandbox-exec\b/g,
  /\bIS_SANDBOX\b|approvals-and-sandbox\b/g,
  /worker_threads|BUN_TEST_WORKER_ID/g,
  /`test\/[^`]+`/g,
  /https?:\/\/\S+/g,
];

/** Hosts packages come from are the machine's configuration; absolute paths are somebody's machine. */
const REGISTRY_HOST =
  /\b(?:registry|mirrors?|proxy|deb|archive|nexus|artifactory)\.[a-z0-9-]+\.[a-z]{2,}\b/gi;
const MACHINE_PATH = /(?<![\w./~-])\/(?:home|Users|work|farm)\/[\w.-]+/g;

function findings(files: RepositoryFile[], pattern: RegExp, legitimate: RegExp[] = []): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const rest = legitimate.reduce((left, allowed) => left.replace(allowed, " "), line);
      return [...rest.matchAll(pattern)].map((match) => `${path}:${index + 1}: ${match[0].trim()}`);
    }),
  );
}

function sample(text: string): RepositoryFile[] {
  return [{ path: "sample", text }];
}

test("code and docs call things by their one name", () => {
  const files = repositoryFiles("src", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md");
  expect(findings(files, SYNONYMS, LEGITIMATE)).toEqual([]);
});

test("nothing names a package host or a path of somebody's machine", () => {
  const files = repositoryFiles().filter((file) => !file.path.startsWith("test/unit/wording"));
  expect(findings(files, REGISTRY_HOST)).toEqual([]);
  expect(findings(files, MACHINE_PATH)).toEqual([]);
});

test("the checks above find what they look for and spare what is legitimate", () => {
  expect(findings(sample("one sandbox\ntwo Containers, a workerPool"), SYNONYMS)).toEqual([
    "sample:1: sandbox",
    "sample:2: Containers",
    "sample:2: workerPool",
  ]);
  expect(
    findings(sample("x instanceof Y; busybox; `-sandbox on`; no container engine"), SYNONYMS, LEGITIMATE),
  ).toEqual([]);
  expect(findings(sample("from registry.example.org and /home/somebody/x"), REGISTRY_HOST)).toHaveLength(1);
  expect(findings(sample("see ~/work/x, ./home/y, /home/somebody/x"), MACHINE_PATH)).toEqual([
    "sample:1: /home/somebody",
  ]);
});
