import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  coversExactly,
  pageBytesOf,
  privateExtents,
  privatelyMapped,
} from "../../../src/vm/private-pages.ts";

const PAGE = 4096;
const PRESENT = 1n << 63n;
const SWAPPED = 1n << 62n;
const OF_FILE = 1n << 61n;
/** What else a kernel puts there: soft-dirty, exclusive, a page frame number */
const NOISE = (1n << 55n) | (1n << 56n) | 0x1234n;

describe("the memory of a process", () => {
  const maps = [
    "555500000000-555500001000 r-xp 00000000 fe:00 77 /usr/bin/qemu-system-x86_64",
    "7f0000000000-7f0001000000 rw-p 00000000 fe:00 1234 /store/snapshots/tools base/memory.bin",
    "7f0001000000-7f0002000000 rw-p 01000000 fe:00 1234 /store/snapshots/tools base/memory.bin (deleted)",
    "7f0003000000-7f0004000000 rw-s 00000000 fe:00 1234 /store/memory.bin",
    "7f0005000000-7f0006000000 rw-p 00000000 fe:00 99 /elsewhere/memory.bin",
    "7f0007000000-7f0008000000 rw-p 00000000 fe:00 1234 /store/not-memory.bin",
    "7f0009000000-7f0009001000 rw-p 00000000 00:00 0 ",
    "7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0 [stack]",
    "",
  ].join("\n");

  test("shows a file where it is mapped privately, also after its name is gone", () => {
    expect(privatelyMapped(maps, "memory.bin")).toEqual({
      inode: 1234n,
      mappings: [
        { start: 0x7f0000000000, end: 0x7f0001000000, fileOffset: 0 },
        { start: 0x7f0001000000, end: 0x7f0002000000, fileOffset: 0x1000000 },
      ],
    });
  });

  test("does not show a file that is not mapped", () => {
    expect(privatelyMapped(maps, "state.bin")).toBeNull();
    expect(privatelyMapped("", "memory.bin")).toBeNull();
  });
});

describe("the mappings of a file", () => {
  const at = (fileOffset: number, bytes: number) => ({ start: 4096, end: 4096 + bytes, fileOffset });

  test("are sound when they show all of it, once", () => {
    expect(coversExactly([at(0, 300)], 300)).toBe(true);
    expect(coversExactly([at(100, 200), at(0, 100)], 300)).toBe(true);
  });

  test.each([
    ["none", []],
    ["a gap", [at(0, 100), at(200, 100)]],
    ["an overlap", [at(0, 200), at(100, 200)]],
    ["too little", [at(0, 200)]],
    ["too much", [at(0, 300), at(300, 1e12)]],
  ])("are not when there is %s", (_, mappings) => {
    expect(coversExactly(mappings, 300)).toBe(false);
  });
});

describe("a page", () => {
  const mapping = { start: 0x7f0000000000, end: 0x7f0000000000 + 8 * PAGE, fileOffset: 0x10000 };

  function written(...entries: bigint[]): number[][] {
    const bytes = new Uint8Array(new BigUint64Array(entries).buffer);
    return privateExtents(bytes, mapping, PAGE).map(({ address, fileOffset, bytes: size }) => [
      (address - mapping.start) / PAGE,
      (fileOffset - mapping.fileOffset) / PAGE,
      size / PAGE,
    ]);
  }

  test.each([
    ["was never touched", 0n, false],
    ["was only read", PRESENT | OF_FILE, false],
    ["is on its way to another place, and the file's", SWAPPED | OF_FILE, false],
    ["was written", PRESENT, true],
    ["was written and swapped out", SWAPPED, true],
  ])("that %s", (_, flags, isWritten) => {
    expect(written(flags)).toEqual(isWritten ? [[0, 0, 1]] : []);
    expect(written(flags | NOISE)).toEqual(isWritten ? [[0, 0, 1]] : []);
  });

  test("joins those beside it", () => {
    expect(written(PRESENT, SWAPPED, 0n, PRESENT | OF_FILE, PRESENT, 0n, PRESENT, PRESENT)).toEqual([
      [0, 0, 2],
      [4, 4, 1],
      [6, 6, 2],
    ]);
  });

  test("is found in a view of a larger buffer", () => {
    const all = new Uint8Array(new BigUint64Array([PRESENT, 0n, PRESENT]).buffer);
    expect(privateExtents(all.subarray(8), mapping, PAGE)).toEqual([
      { address: mapping.start + PAGE, fileOffset: mapping.fileOffset + PAGE, bytes: PAGE },
    ]);
  });
});

describe("the page size", () => {
  test("is in the auxiliary vector", () => {
    const vector = new Uint8Array(new BigUint64Array([33n, 1n, 6n, 65536n, 0n, 0n]).buffer);
    expect(pageBytesOf(vector)).toBe(65_536);
    expect(() => pageBytesOf(vector.subarray(0, 16))).toThrow("page size");
  });

  test.skipIf(process.platform !== "linux")("of this machine is a power of two from 4 KiB", () => {
    const bytes = pageBytesOf(readFileSync("/proc/self/auxv"));
    expect(bytes).toBeGreaterThanOrEqual(4096);
    expect(Math.log2(bytes) % 1).toBe(0);
  });
});
