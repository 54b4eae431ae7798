import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  DIFF_HEADER_BYTES,
  DiffFormatError,
  type DiffIndex,
  decodeDiffIndex,
  diffBytes,
  encodeDiffIndex,
  indexBytesOf,
} from "../../../../src/engine/snapshots/diff-index.ts";

const PAGE_COUNT = 512;

const indices: fc.Arbitrary<DiffIndex> = fc.record({
  pageBytes: fc.constantFrom(4096, 16_384, 65_536),
  parentSha256: fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
  pages: fc
    .uniqueArray(fc.nat(PAGE_COUNT - 1), { maxLength: PAGE_COUNT })
    .map((pages) => new Uint32Array(pages.sort((a, b) => a - b))),
  memoryBytes: fc.constant(PAGE_COUNT * 65_536),
});

const SMALL: DiffIndex = {
  pageBytes: 4096,
  memoryBytes: 8 * 4096,
  parentSha256: "ab".repeat(32),
  pages: new Uint32Array([1, 3, 7]),
};
const SMALL_BYTES = diffBytes(3, 4096);

function changed(change: (view: DataView) => void): Uint8Array {
  const bytes = encodeDiffIndex(SMALL);
  change(new DataView(bytes.buffer));
  return bytes;
}

describe("the index of a memory diff", () => {
  test("comes back as it was written, and fills whole pages", () => {
    fc.assert(
      fc.property(indices, (index) => {
        const bytes = encodeDiffIndex(index);
        const fileBytes = diffBytes(index.pages.length, index.pageBytes);
        expect(bytes.byteLength % index.pageBytes).toBe(0);
        expect(indexBytesOf(bytes.subarray(0, DIFF_HEADER_BYTES), fileBytes)).toBe(bytes.byteLength);
        expect(decodeDiffIndex(bytes, fileBytes)).toEqual(index);
      }),
    );
  });

  test("is refused when any bit of its header is another, but for the parent's hash", () => {
    for (let bit = 0; bit < 32 * 8; bit++) {
      const bytes = encodeDiffIndex(SMALL);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      let decoded: DiffIndex | null = null;
      try {
        decoded = decodeDiffIndex(bytes, SMALL_BYTES);
      } catch (error) {
        expect(error).toBeInstanceOf(DiffFormatError);
      }
      // The size of the memory is the parent's to confirm; all else is fixed by the file.
      if (decoded) expect({ ...decoded, memoryBytes: 0 }).toEqual({ ...SMALL, memoryBytes: 0 });
    }
  });

  test.each([
    ["pages out of order", (view: DataView) => view.setUint32(64, 3, true)],
    ["pages out of order", (view: DataView) => view.setUint32(68, 1, true)],
    ["pages beyond its memory", (view: DataView) => view.setUint32(72, 8, true)],
    ["between its index and its pages", (view: DataView) => view.setUint8(4095, 1)],
    ["pages of 2048 bytes", (view: DataView) => view.setUint32(12, 2048, true)],
    ["pages of 0 bytes", (view: DataView) => view.setUint32(12, 0, true)],
    ["not what 4 pages take", (view: DataView) => view.setBigUint64(24, 4n, true)],
    ["not what 18446744073709552000 pages take", (view: DataView) => view.setBigUint64(24, -1n, true)],
    ["bytes of memory", (view: DataView) => view.setBigUint64(16, 2n ** 60n, true)],
    ["version 2", (view: DataView) => view.setUint32(8, 2, true)],
    ["does not begin as a diff", (view: DataView) => view.setUint8(0, 0)],
  ])("is refused with '%s'", (reason, change) => {
    expect(() => decodeDiffIndex(changed(change), SMALL_BYTES)).toThrow(reason);
  });

  test("is refused when the file is longer or shorter than its pages", () => {
    const header = encodeDiffIndex(SMALL).subarray(0, DIFF_HEADER_BYTES);
    for (const fileBytes of [SMALL_BYTES - 1, SMALL_BYTES + 1, 0])
      expect(() => indexBytesOf(header, fileBytes)).toThrow("not what 3 pages take");
    expect(() => indexBytesOf(header.subarray(1), SMALL_BYTES)).toThrow("too short");
  });
});
