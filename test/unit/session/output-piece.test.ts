import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AgentError } from "../../../src/guest/agent-error.ts";
import { type OutputSource, readOutputPiece } from "../../../src/session/output-piece.ts";

const OPTIONS = { seed: 20_261_130, numRuns: 300 };
const NOTHING = new Uint8Array(0);
const LOST = /\n\[\.\.\. (\d+) bytes were not kept for want of room in the session \.\.\.\]\n/;

/** A file of the guest that holds these bytes. */
function fileOf(bytes: Uint8Array) {
  return async (_path: string, offset: number, limitBytes: number) =>
    bytes.subarray(offset, offset + limitBytes);
}

const NO_FILE = () => Promise.reject(new AgentError("agent_refused", "x", { refusal: "not_found" }));

/** Reads to where nothing new comes, in pieces. */
async function readAll(source: OutputSource, limitBytes: number, file = fileOf(NOTHING), from = 0) {
  const texts: string[] = [];
  let offset = from;
  for (;;) {
    const piece = await readOutputPiece(source, offset, limitBytes, file);
    if (piece.nextOffset === offset) return { text: texts.join(""), offset };
    texts.push(piece.text);
    offset = piece.nextOffset;
  }
}

describe("output that was kept", () => {
  test("is read whole in pieces of any size, from memory and from its file", async () => {
    const cases = fc.record({
      text: fc.string({ unit: "grapheme", maxLength: 60 }),
      head: fc.nat(40),
      tail: fc.nat(40),
      limit: fc.integer({ min: 4, max: 30 }),
      hasEnded: fc.boolean(),
    });
    const reads = async ({
      text,
      head,
      tail,
      limit,
      hasEnded,
    }: typeof cases extends fc.Arbitrary<infer T> ? T : never) => {
      const bytes = new TextEncoder().encode(text);
      const source = {
        head: bytes.subarray(0, head),
        tail: hasEnded ? bytes.subarray(Math.max(0, bytes.byteLength - tail)) : NOTHING,
        totalBytes: bytes.byteLength,
        path: "/run/out",
        hasEnded,
      };
      expect((await readAll(source, limit, fileOf(bytes))).text).toBe(text);
    };
    await fc.assert(fc.asyncProperty(cases, reads), OPTIONS);
  });

  test("gives the rest of a character only when it has come", async () => {
    const bytes = new TextEncoder().encode("aü");
    const growing = { head: bytes.subarray(0, 2), tail: NOTHING, totalBytes: 2, path: null, hasEnded: false };
    expect(await readAll(growing, 100)).toEqual({ text: "a", offset: 1 });
    const ended = { ...growing, hasEnded: true };
    expect(await readAll(ended, 100)).toEqual({ text: "a\ufffd", offset: 2 });
  });
});

describe("output that was not kept", () => {
  const bytes = new TextEncoder().encode("0123456789");

  test("between a file that ended early and the tail is counted and passed over", async () => {
    const source = {
      head: bytes.subarray(0, 2),
      tail: bytes.subarray(8),
      totalBytes: 10,
      path: "/o",
      hasEnded: true,
    };
    const { text, offset } = await readAll(source, 100, fileOf(bytes.subarray(0, 5)));
    expect(text.replace(LOST, "<$1>")).toBe("01234<3>89");
    expect(offset).toBe(10);
  });

  test("because its file is gone is counted too, while the run goes on", async () => {
    const source = { head: bytes.subarray(0, 2), tail: NOTHING, totalBytes: 10, path: "/o", hasEnded: false };
    const { text } = await readAll(source, 100, NO_FILE);
    expect(text.replace(LOST, "<$1>")).toBe("01<8>");
  });

  test("is told even when half a character is all there is before it", async () => {
    const half = new TextEncoder().encode("ü").subarray(0, 1);
    const source = { head: half, tail: NOTHING, totalBytes: 9, path: null, hasEnded: true };
    expect((await readAll(source, 100)).text.replace(LOST, "<$1>")).toBe("\ufffd<8>");
  });

  test("is not made up from a file that cannot be read for another reason", async () => {
    const source = { head: NOTHING, tail: NOTHING, totalBytes: 9, path: "/o", hasEnded: true };
    const lost = () => Promise.reject(new AgentError("agent_lost", "gone"));
    await expect(readOutputPiece(source, 0, 10, lost)).rejects.toThrow("gone");
  });
});
