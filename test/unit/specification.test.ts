import { expect, test } from "bun:test";
import { repositoryFiles } from "../support/repository-files.ts";

const GAP = /^(not checked here|no test yet)/;
const PROOF = /^`([^`]+)` "(.+)"$/;

interface Promised {
  promise: string;
  proof: string;
}

/** Rows of all two-column tables, without their headings. */
function promises(text: string): Promised[] {
  return [...text.matchAll(/^\| (.+?) +\| (.+?) +\|$/gm)]
    .map((match) => ({ promise: match[1]!, proof: match[2]! }))
    .filter(({ promise }) => promise !== "promise" && !promise.startsWith("--"));
}

/** What is wrong with a row's proof, or null. Several proofs are separated by semicolons. */
function problem({ promise, proof }: Promised, textOf: (path: string) => string | undefined): string | null {
  if (GAP.test(proof)) return null;
  for (const part of proof.split("; ")) {
    const [, path, title] = PROOF.exec(part) ?? [];
    if (path === undefined || title === undefined)
      return `${promise}: proof is not \`file\` "title": ${part}`;
    const text = textOf(path);
    if (text === undefined) return `${promise}: no file ${path}`;
    if (!title.split(" > ").every((name) => text.includes(name)))
      return `${promise}: ${path} has no test "${title}"`;
  }
  return null;
}

const files = new Map(
  repositoryFiles("docs", "test", "native", "guest", "bench", "scripts").map((file) => [
    file.path,
    file.text,
  ]),
);

test("every promise names a test that exists, or admits that none does", () => {
  const rows = promises(files.get("docs/SPECIFICATION.md") ?? "");
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.map((row) => problem(row, (path) => files.get(path))).filter((text) => text !== null)).toEqual(
    [],
  );
});

test("the check finds missing files, missing titles and rows without proof", () => {
  const table =
    '| promise | proof |\n| --- | --- |\n| a | `x.test.ts` "good" |\n| b  | `x.test.ts` "bad" |\n| c | surely |\n';
  const rows = promises(table);
  const textOf = (path: string) => (path === "x.test.ts" ? 'test("good"' : undefined);
  expect(rows.map((row) => problem(row, textOf))).toEqual([
    null,
    'b: x.test.ts has no test "bad"',
    'c: proof is not `file` "title": surely',
  ]);
  expect(problem({ promise: "d", proof: '`y.test.ts` "t"' }, textOf)).toBe("d: no file y.test.ts");
  expect(problem({ promise: "e", proof: "not checked here: no machine" }, textOf)).toBeNull();
});
