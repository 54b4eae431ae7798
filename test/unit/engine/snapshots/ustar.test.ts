import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { TarReader } from "../../../../src/engine/snapshots/tar-reader.ts";
import {
  BLOCK_BYTES,
  decodeHeader,
  encodeHeader,
  MAX_ENTRY_BYTES,
  paddingOf,
  UstarError,
} from "../../../../src/engine/snapshots/ustar.ts";
import { split } from "../../../fuzz/mutate.ts";
import { Rng } from "../../../support/rng.ts";
import { TemporaryDirectory } from "../../../support/temporary-directory.ts";

const names = fc.string({ unit: fc.constantFrom(..."abcdefghij.-_09"), minLength: 1, maxLength: 100 });
const contents = fc.array(fc.record({ name: names, content: fc.uint8Array({ maxLength: 2000 }) }), {
  maxLength: 6,
});

function archiveOf(entries: { name: string; content: Uint8Array }[]): Uint8Array {
  const parts = entries.flatMap(({ name, content }) => [
    encodeHeader({ name, bytes: content.byteLength }, 1_700_000_000),
    content,
    new Uint8Array(paddingOf(content.byteLength)),
  ]);
  return Buffer.concat([...parts, new Uint8Array(2 * BLOCK_BYTES)]);
}

async function* inPieces(bytes: Uint8Array, seed: number): AsyncGenerator<Uint8Array> {
  yield* split(bytes, new Rng(seed));
}

async function readAll(bytes: Uint8Array, seed = 1): Promise<{ name: string; content: Uint8Array }[]> {
  const reader = new TarReader(inPieces(bytes, seed));
  const entries = [];
  for (let entry = await reader.next(); entry; entry = await reader.next()) {
    const pieces = [];
    for await (const piece of reader.content(entry)) pieces.push(piece.slice());
    entries.push({ name: entry.name, content: new Uint8Array(Buffer.concat(pieces)) });
  }
  await reader.end();
  return entries;
}

/** A header with one field changed, and a checksum that fits again. */
function headerWith(at: number, field: string): Uint8Array {
  const header = Buffer.from(encodeHeader({ name: "memory.bin", bytes: 5 }, 0));
  header.write(field, at, "latin1");
  header.write("        ", 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

describe("an archive", () => {
  test("comes back as it was written, however it is cut into pieces", async () => {
    await fc.assert(
      fc.asyncProperty(contents, fc.nat(), async (entries, seed) => {
        expect(await readAll(archiveOf(entries), seed)).toEqual(entries);
      }),
      { numRuns: 60 },
    );
  });

  test("is one to tar as well", () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("a.tar");
    writeFileSync(path, archiveOf([{ name: "memory.bin", content: new Uint8Array(700).fill(65) }]));
    const listed = Bun.spawnSync(["tar", "--utc", "-tvf", path]).stdout.toString();
    expect(listed).toMatch(/^-rw------- 0\/0 +700 2023-11-14 22:13 memory\.bin\n$/);
    expect(Bun.spawnSync(["tar", "-xOf", path]).stdout.toString()).toBe("A".repeat(700));
  });

  test("of another archiver is read when it is plain ustar", async () => {
    using directory = new TemporaryDirectory();
    writeFileSync(directory.join("x"), "hello");
    const { stdout } = Bun.spawnSync(["tar", "--format=ustar", "-C", directory.path, "-cf", "-", "x"]);
    expect(await readAll(stdout)).toEqual([{ name: "x", content: new Uint8Array(Buffer.from("hello")) }]);
  });

  test.each(["gnu", "pax", "v7", "oldgnu"])("of format %s is refused", async (format) => {
    using directory = new TemporaryDirectory();
    writeFileSync(directory.join("x"), "hello");
    const { stdout } = Bun.spawnSync(["tar", `--format=${format}`, "-C", directory.path, "-cf", "-", "x"]);
    await expect(readAll(stdout)).rejects.toThrow(UstarError);
  });

  test("that ends early is refused wherever it ends", async () => {
    const whole = archiveOf([{ name: "x", content: new Uint8Array(600).fill(1) }]);
    for (let bytes = 0; bytes < whole.byteLength; bytes += 64)
      await expect(readAll(whole.subarray(0, bytes))).rejects.toThrow(UstarError);
  });

  test("with something behind its end, or behind a file, is refused", async () => {
    const whole = archiveOf([{ name: "x", content: new Uint8Array(1) }]);
    for (const more of [new Uint8Array(512).fill(1), new Uint8Array(1), new Uint8Array(20 * 512)])
      await expect(readAll(Buffer.concat([whole, more]))).rejects.toThrow(UstarError);
    whole[BLOCK_BYTES + 1] = 1;
    await expect(readAll(whole)).rejects.toThrow("something behind x");
  });
});

describe("a header", () => {
  test.each([
    ["type", 156, "1"],
    ["type", 156, "2"],
    ["type", 156, "5"],
    ["type", 156, "x"],
    ["type", 156, "g"],
    ["type", 156, "L"],
    ["type", 156, "S"],
    ["type", 156, "\0"],
    ["link", 157, "target"],
    ["prefix", 345, "/etc"],
    ["not of ustar", 257, "ustar  \0"],
    ["not octal", 124, "\x80\0\0\0\0\0\0\0\0\0\0\x01"],
    ["not octal", 124, "-0000000001\0"],
    ["not octal", 124, "0x000000001\0"],
    ["not octal", 124, "\0\0\0\0\0\0\0\0\0\0\0\0"],
    ["behind its end", 20, "hidden"],
  ])("is refused for its %s", (reason, at, field) => {
    expect(() => decodeHeader(headerWith(at, field))).toThrow(reason);
  });

  test("is refused when any bit is another and the checksum is not", () => {
    const header = encodeHeader({ name: "state.bin", bytes: 1 }, 0);
    for (let bit = 0; bit < BLOCK_BYTES * 8; bit++) {
      const changed = header.slice();
      changed[bit >> 3]! ^= 1 << (bit & 7);
      try {
        // Within the checksum's own field some bits make no other number.
        expect(decodeHeader(changed)).toEqual({ name: "state.bin", bytes: 1 });
        expect(bit >> 3).toBeGreaterThanOrEqual(148);
        expect(bit >> 3).toBeLessThan(156);
      } catch (error) {
        expect(error).toBeInstanceOf(UstarError);
      }
    }
  });

  test("holds sizes up to what its digits count to", () => {
    expect(decodeHeader(encodeHeader({ name: "x", bytes: MAX_ENTRY_BYTES }, 0))).toEqual({
      name: "x",
      bytes: MAX_ENTRY_BYTES,
    });
    expect(() => encodeHeader({ name: "x", bytes: MAX_ENTRY_BYTES + 1 }, 0)).toThrow("cannot hold");
  });
});
