import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { writeFileAtomically } from "../../../src/base/atomic-file.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test("a file is replaced whole, and nothing is left beside it", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("file");
  await writeFileAtomically(path, "a".repeat(100));
  await writeFileAtomically(path, "b");
  expect(readFileSync(path, "utf8")).toBe("b");
  expect(readdirSync(directory.path)).toEqual(["file"]);
});

test("writers at the same time do not mix", async () => {
  using directory = new TemporaryDirectory();
  const texts = ["a", "b", "c", "d"].map((letter) => letter.repeat(50_000));
  await Promise.all(texts.map((text) => writeFileAtomically(directory.join("file"), text)));
  expect(texts).toContain(readFileSync(directory.join("file"), "utf8"));
  expect(readdirSync(directory.path)).toEqual(["file"]);
});

test("a write that fails leaves nothing", async () => {
  using directory = new TemporaryDirectory();
  mkdirSync(directory.join("file", "occupied"), { recursive: true });
  await rejection(writeFileAtomically(directory.join("file"), "x"));
  expect(readdirSync(directory.path)).toEqual(["file"]);
});
