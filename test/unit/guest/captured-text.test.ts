import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { capturedText } from "../../../src/guest/captured-text.ts";
import type { CapturedStream } from "../../../src/guest/output-capture.ts";

const OPTIONS = { seed: 20_240_601, numRuns: 500 };
const CUT = /\n\[\.\.\. (\d+) bytes omitted(?:; all of it is in (.*))? \.\.\.\]\n/;

function textOf(stream: CapturedStream): string {
  return capturedText(stream).text;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** What the agent keeps of a stream: the first and the last `half` bytes. */
function captured(bytes: Uint8Array, half: number, path: string | null = null) {
  if (bytes.byteLength <= 2 * half)
    return {
      head: bytes,
      tail: new Uint8Array(0),
      totalBytes: bytes.byteLength,
      path: null,
      isPathWhole: false,
    };
  return {
    head: bytes.subarray(0, half),
    tail: bytes.subarray(bytes.byteLength - half),
    totalBytes: bytes.byteLength,
    path,
    isPathWhole: path !== null,
  };
}

describe("a stream that is all there", () => {
  test("is its text, wherever it was split", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.nat(), (text, split) => {
        const bytes = bytesOf(text);
        const at = split % (bytes.byteLength + 1);
        const stream = {
          head: bytes.subarray(0, at),
          tail: bytes.subarray(at),
          totalBytes: bytes.byteLength,
          isPathWhole: false,
        };
        expect(textOf({ ...stream, path: null })).toBe(text);
      }),
      OPTIONS,
    );
  });

  test("keeps a byte order mark, and shows bytes that are not UTF-8 as U+FFFD", () => {
    expect(capturedText(captured(Buffer.from("efbbbf61", "hex"), 100))).toEqual({
      text: "\uFEFFa",
      hasReplacements: false,
    });
    expect(capturedText(captured(Buffer.from("61ff62c3", "hex"), 100))).toEqual({
      text: "a\uFFFDb\uFFFD",
      hasReplacements: true,
    });
  });
});

describe("a stream whose middle is missing", () => {
  const text = fc.string({ unit: "binary", minLength: 20, maxLength: 80 });

  test("is cut between characters, and the count of what is left out is right", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 9 }), (whole, half) => {
        const bytes = bytesOf(whole);
        fc.pre(bytes.byteLength > 2 * half);
        const [start, omitted, , end] = textOf(captured(bytes, half, "/tmp/o")).split(CUT);
        expect(whole.startsWith(start!) && whole.endsWith(end!)).toBe(true);
        expect(bytesOf(start + end!).byteLength + Number(omitted)).toBe(bytes.byteLength);
        // No more than the rest of one character is given up at each side.
        expect(Number(omitted) - (bytes.byteLength - 2 * half)).toBeLessThanOrEqual(6);
      }),
      OPTIONS,
    );
  });

  test("never fails on bytes that are no text, and still counts right", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 12, maxLength: 40 }),
        fc.integer({ min: 0, max: 5 }),
        (bytes, half) => {
          const stream = captured(bytes, half);
          const [, omitted] = CUT.exec(textOf(stream)) ?? [];
          const missing = bytes.byteLength - 2 * half;
          expect(Number(omitted)).toBeGreaterThanOrEqual(missing);
          expect(Number(omitted)).toBeLessThanOrEqual(missing + 6);
        },
      ),
      OPTIONS,
    );
  });

  test("says where the whole is", () => {
    const stream = {
      head: bytesOf("ab"),
      tail: bytesOf("yz"),
      totalBytes: 26,
      path: "/run/out",
      isPathWhole: true,
    };
    expect(textOf(stream)).toBe("ab\n[... 22 bytes omitted; all of it is in /run/out ...]\nyz");
    expect(textOf({ ...stream, isPathWhole: false })).toBe(
      "ab\n[... 22 bytes omitted; its start is in /run/out ...]\nyz",
    );
    expect(textOf({ ...stream, path: null })).toBe("ab\n[... 22 bytes omitted ...]\nyz");
  });

  test("may have kept nothing at all", () => {
    const nothing = new Uint8Array(0);
    expect(textOf({ head: nothing, tail: nothing, totalBytes: 7, path: null, isPathWhole: false })).toBe(
      "\n[... 7 bytes omitted ...]\n",
    );
  });
});
