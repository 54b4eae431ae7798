import { expect, test } from "bun:test";
import fc from "fast-check";
import { connectLine, type HandshakeAnswer, HandshakeReader } from "../../../src/vsock/handshake.ts";

const SEED = 20_240_611;

function read(pieces: Uint8Array[]): HandshakeAnswer {
  const reader = new HandshakeReader();
  for (const [at, piece] of pieces.entries()) {
    const answer = reader.push(piece);
    if (answer.state === "ok") {
      return { ...answer, rest: new Uint8Array(Buffer.concat([answer.rest, ...pieces.slice(at + 1)])) };
    }
    if (answer.state !== "more") return answer;
  }
  return { state: "more" };
}

test("the request names the port", () => {
  expect(connectLine(7000)).toBe("CONNECT 7000\n");
});

test("any u32 is an answer, and what follows is left for the frames, however it is split", () => {
  const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(u32, fc.uint8Array({ maxLength: 30 }), fc.nat(40), (number, rest, cut) => {
      const bytes = Buffer.concat([Buffer.from(`OK ${number}\n`), rest]);
      const answer = read([bytes.subarray(0, cut), bytes.subarray(cut)]);
      expect(answer).toEqual({ state: "ok", number, rest });
    }),
    { seed: SEED },
  );
});

test("any bytes are judged the same whole and byte by byte", () => {
  const letters = fc.constantFrom(..."OK 0123456789\n\0x");
  const text = fc.oneof(
    fc.string({ unit: letters, maxLength: 140 }),
    fc.string({ unit: letters }).map((s) => `OK ${s}\n`),
  );
  fc.assert(
    fc.property(text, (line) => {
      const bytes = new Uint8Array(Buffer.from(line));
      expect(read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(read([bytes]));
    }),
    { seed: SEED, numRuns: 500 },
  );
});

test("a line of 128 bytes with its newline is the longest", () => {
  expect(read([Buffer.from(`${"x".repeat(127)}\n`)])).toEqual({ state: "handshake_rejected" });
  expect(read([Buffer.from("x".repeat(127))])).toEqual({ state: "more" });
  expect(read([Buffer.from("x".repeat(128))])).toEqual({ state: "handshake_oversized" });
});
