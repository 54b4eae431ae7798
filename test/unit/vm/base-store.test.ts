import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { baseNames, basePaths, removeBase } from "../../../src/vm/base-store.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

function makeBase(storePath: string, name: string): void {
  const { dir, memoryPath } = basePaths(storePath, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(memoryPath, "x");
}

test("a base's files lie under its name", () => {
  expect(basePaths("/store", "tools")).toEqual({
    dir: "/store/snapshots/tools",
    memoryPath: "/store/snapshots/tools/memory.bin",
    statePath: "/store/snapshots/tools/state.bin",
    manifestPath: "/store/snapshots/tools/manifest.json",
    sealPath: "/store/snapshots/tools/verified.json",
    lockPath: "/store/snapshots/.tools.lock",
  });
});

test("bases are listed by name, without locks and builds under way", async () => {
  using store = new TemporaryDirectory();
  expect(await baseNames(store.path)).toEqual([]);
  for (const name of ["b", "a", ".a.building"]) makeBase(store.path, name);
  writeFileSync(basePaths(store.path, "a").lockPath, "");
  expect(await baseNames(store.path)).toEqual(["a", "b"]);
});

test("a base is removed, and only that", async () => {
  using store = new TemporaryDirectory();
  for (const name of ["a", "b"]) makeBase(store.path, name);
  await removeBase({ storePath: store.path }, "a");
  expect(await baseNames(store.path)).toEqual(["b"]);
});

test("a base that is not there cannot be removed, and the error lists the next steps", async () => {
  using store = new TemporaryDirectory();
  const error = await rejection(removeBase({ storePath: store.path }, "none"));
  expect(error).toMatchObject({ code: "base_missing" });
  expect(error.message).toContain("ignition-mcp base build none");
});

test.each(["..", ".", "", "../other", "a/memory.bin", "a/"])("removing %p removes nothing", async (name) => {
  using store = new TemporaryDirectory();
  makeBase(store.path, "a");
  mkdirSync(store.join("other"));
  await rejection(removeBase({ storePath: store.path }, name));
  expect(existsSync(basePaths(store.path, "a").memoryPath)).toBe(true);
  expect(readdirSync(store.path).sort()).toEqual(["other", "snapshots"]);
});
