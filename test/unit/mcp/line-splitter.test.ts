import { expect, test } from "bun:test";
import fc from "fast-check";
import { KEPT_BYTES, type Line, LineSplitter } from "../../../src/mcp/line-splitter.ts";

const SEED = 20_261_130;

function split(bytes: Uint8Array, cuts: readonly number[], limitBytes: number): Line[] {
  const splitter = new LineSplitter(limitBytes);
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return edges.slice(1).flatMap((end, index) => [...splitter.push(bytes.subarray(edges[index]!, end))]);
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

test("lines come out whole and in order however the stream is cut", () => {
  const line = fc
    .uint8Array({ maxLength: 50 })
    .map((bytes) => bytes.map((byte) => (byte === 10 ? 11 : byte)));
  const property = fc.property(fc.array(line), fc.array(fc.nat()), (lines, cuts) => {
    const stream = Buffer.concat(lines.flatMap((bytes) => [bytes, Buffer.from("\n")]));
    const out = split(stream, cuts, 1000);
    expect(out.map((got) => (got.kind === "line" ? text(got.bytes) : got))).toEqual(lines.map(text));
  });
  fc.assert(property, { seed: SEED });
});

test("a line over the limit keeps its ends however the stream is cut, and the next line is whole", () => {
  const property = fc.property(fc.integer({ min: 10_001, max: 40_000 }), fc.array(fc.nat()), (size, cuts) => {
    const long = Buffer.from(Array.from({ length: size }, (_, index) => 65 + (index % 26)));
    const [oversize, next] = split(Buffer.concat([long, Buffer.from("\nnext\n")]), cuts, 10_000);
    if (oversize?.kind !== "oversize" || next?.kind !== "line") throw new Error("not the expected kinds");
    expect(text(oversize.head)).toBe(text(long.subarray(0, KEPT_BYTES)));
    expect(text(oversize.tail)).toBe(text(long.subarray(-KEPT_BYTES)));
    expect(text(next.bytes)).toBe("next");
  });
  fc.assert(property, { seed: SEED });
});

test("a line of exactly the limit is taken and one byte more is not", () => {
  expect(split(Buffer.from("12345\n"), [], 5).map((line) => line.kind)).toEqual(["line"]);
  expect(split(Buffer.from("123456\n"), [], 5).map((line) => line.kind)).toEqual(["oversize"]);
});

test("text after the last newline is no line yet", () => {
  expect(split(Buffer.from("a\nrest"), [], 10)).toHaveLength(1);
});
