import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { VARIABLES } from "../../src/config/variables.ts";
import { repositoryFiles } from "../support/repository-files.ts";

const ROOT_PATH = resolve(import.meta.dir, "../..");
const documents = repositoryFiles("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs");

function textOf(path: string): string {
  return documents.find((file) => file.path === path)!.text;
}

/** Relative targets of Markdown links, without fragments. */
function linkTargets(text: string): string[] {
  return [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map((match) => match[1]!);
}

test("the README lists every environment variable, and no other", () => {
  const listed = [...textOf("README.md").matchAll(/^\| `(IGN_MCP_\w+)`/gm)].map((match) => match[1]);
  expect(listed.sort()).toEqual(Object.keys(VARIABLES).sort());
});

test("the README gives the defaults that apply", () => {
  const readme = textOf("README.md");
  for (const [name, { fallback }] of Object.entries(VARIABLES)) {
    if (!/^(\d+|[a-z-]+|~\/\S+)$/.test(fallback)) continue;
    expect(readme).toMatch(new RegExp(`^\\| \`${name}\` +\\| \`${fallback}\` `, "m"));
  }
});

test("links between documents lead somewhere", () => {
  const dead = documents.flatMap(({ path, text }) =>
    linkTargets(text)
      .filter((target) => !existsSync(join(ROOT_PATH, dirname(path), target)))
      .map((target) => `${path} → ${target}`),
  );
  expect(dead).toEqual([]);
});

test("every decision is in the index", () => {
  const records = documents.filter((file) => /^docs\/adr\/\d{4}-/.test(file.path));
  const index = linkTargets(textOf("docs/adr/README.md"));
  expect(
    records.map((file) => file.path.replace("docs/adr/", "")).filter((name) => !index.includes(name)),
  ).toEqual([]);
});

test("files named in docs/one-request.md exist", () => {
  const text = textOf("docs/one-request.md");
  const paths = [...text.matchAll(/`((?:src|native|guest)\/[\w./-]*)`/g)].map((match) => match[1]!);
  const names = [...text.matchAll(/`([\w-]+\.ts)`/g)].map((match) => match[1]!);
  const known = new Set(repositoryFiles("src").map((file) => basename(file.path)));
  expect(paths.filter((path) => !existsSync(join(ROOT_PATH, path)))).toEqual([]);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});
