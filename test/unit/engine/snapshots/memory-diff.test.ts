import { describe, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import fc from "fast-check";
import {
  applyMemoryDiff,
  readDiffIndex,
  writeMemoryDiff,
} from "../../../../src/engine/snapshots/memory-diff.ts";
import type { FileRange } from "../../../../src/vm/capture-machine.ts";
import { TemporaryDirectory } from "../../../support/temporary-directory.ts";

const PAGE_BYTES = 4096;
const PAGES = 64;
const SHA256 = "cd".repeat(32);
const { signal } = new AbortController();

/** What each page is filled with; zero is a hole's. */
const fills = fc.array(fc.nat(3), { minLength: PAGES, maxLength: PAGES });

function memoryOf(pages: number[]): Uint8Array {
  const bytes = new Uint8Array(PAGES * PAGE_BYTES);
  for (const [page, fill] of pages.entries()) bytes.fill(fill, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
  return bytes;
}

/** Every page that differs, and some that do not, as touched pages that kept their content. */
function rangesOf(before: number[], after: number[], touched: Set<number>): FileRange[] {
  const ranges: FileRange[] = [];
  for (let page = 0; page < PAGES; page++)
    if (before[page] !== after[page] || touched.has(page))
      ranges.push({ offset: page * PAGE_BYTES, bytes: PAGE_BYTES });
  return ranges;
}

async function made(
  before: Uint8Array,
  after: Uint8Array,
  ranges: FileRange[],
  at: (name: string) => string,
) {
  writeFileSync(at("parent"), before);
  writeFileSync(at("changed"), after);
  await using file = await open(at("parent"));
  await using changed = await open(at("changed"));
  const parent = { file, memoryBytes: before.byteLength, sha256: SHA256 };
  return await writeMemoryDiff(parent, changed, ranges, PAGE_BYTES, at("diff"), signal);
}

async function applied(at: (name: string) => string, sha256 = SHA256): Promise<Uint8Array> {
  await using file = await open(at("parent"));
  await using diff = await open(at("diff"));
  const parent = { file, memoryBytes: PAGES * PAGE_BYTES, sha256 };
  await applyMemoryDiff(parent, diff, at("whole"), signal);
  return readFileSync(at("whole"));
}

describe("a memory diff", () => {
  test("over its parent is the memory it was taken of, and holds only the pages that differ", async () => {
    await fc.assert(
      fc.asyncProperty(fills, fills, fc.uniqueArray(fc.nat(PAGES - 1)), async (before, after, touched) => {
        using directory = new TemporaryDirectory();
        const at = (name: string) => directory.join(name);
        const ranges = rangesOf(before, after, new Set(touched));
        const count = await made(memoryOf(before), memoryOf(after), ranges, at);
        const differing = before.flatMap((fill, page) => (fill === after[page] ? [] : [page]));
        expect(count).toBe(differing.length);
        await using diff = await open(at("diff"));
        expect([...(await readDiffIndex(diff)).pages]).toEqual(differing);
        expect(Buffer.compare(await applied(at), memoryOf(after))).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  test("of stretches longer than one piece is whole", async () => {
    using directory = new TemporaryDirectory();
    const at = (name: string) => directory.join(name);
    const bytes = 5 * 1_048_576;
    const after = new Uint8Array(bytes).map((_, at) => at * 7 + (at >> 12));
    writeFileSync(at("parent"), new Uint8Array(bytes));
    await made(new Uint8Array(bytes), after, [{ offset: 0, bytes }], at);
    await using file = await open(at("parent"));
    await using diff = await open(at("diff"));
    await applyMemoryDiff({ file, memoryBytes: bytes, sha256: SHA256 }, diff, at("whole"), signal);
    expect(Buffer.compare(readFileSync(at("whole")), after)).toBe(0);
  });

  test("of nothing is one page, and its result is the parent", async () => {
    using directory = new TemporaryDirectory();
    const at = (name: string) => directory.join(name);
    const memory = memoryOf(Array.from({ length: PAGES }, (_, page) => page));
    expect(await made(memory, memory, [{ offset: 0, bytes: memory.byteLength }], at)).toBe(0);
    expect(statSync(at("diff")).size).toBe(PAGE_BYTES);
    expect(Buffer.compare(await applied(at), memory)).toBe(0);
  });

  test("goes over no other parent", async () => {
    using directory = new TemporaryDirectory();
    const at = (name: string) => directory.join(name);
    const memory = memoryOf([]);
    await made(memory, memory, [], at);
    await expect(applied(at, "ef".repeat(32))).rejects.toThrow("is of another parent");
  });
});
