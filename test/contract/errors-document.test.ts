import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const textOf = (path: string) => Bun.file(join(ROOT, path)).text();

/** Codes with a heading of their own. */
async function documentedCodes(): Promise<string[]> {
  const text = await textOf("docs/errors.md");
  return [...text.matchAll(/^### `([a-z_]+): /gm)].map((match) => match[1]!);
}

test("every error code a caller can see has its heading in docs/errors.md, and no other has", async () => {
  const source = await textOf("src/session/session-error.ts");
  const sessionCodes = [...source.matchAll(/\| "([a-z_]+)"/g)].map((match) => match[1]!);
  expect(sessionCodes).toContain("unknown_session");
  const codes = ["bad_argument", "internal_error", ...sessionCodes];
  expect((await documentedCodes()).toSorted()).toEqual(codes.toSorted());
});
