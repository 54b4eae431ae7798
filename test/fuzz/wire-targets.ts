import { deepStrictEqual, ok } from "node:assert/strict";
import { encodeFrame, FrameDecoder } from "../../src/vsock/frame-codec.ts";
import { FRAME_OVERHEAD_BYTES, type Frame, MAX_FRAME_BYTES } from "../../src/vsock/frame-connection.ts";
import { type HandshakeAnswer, HandshakeReader, MAX_LINE_BYTES } from "../../src/vsock/handshake.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { split } from "./mutate.ts";

const NEWLINE = 0x0a;

export const handshake: FuzzTarget = {
  name: "handshake",
  corpusPath: "../../native/fuzz/corpus/handshake",
  words: ["OK ", "\n", "4294967295", "4294967296", "OK 0\n", "\r\n"],
  tries: 200_000,
  check(bytes, rng) {
    const whole = readAnswer([bytes]);
    deepStrictEqual(readAnswer(split(bytes, rng)), whole);
    const end = bytes.indexOf(NEWLINE);
    const isOversized = (end < 0 ? bytes.byteLength : end) >= MAX_LINE_BYTES;
    const line = Buffer.from(bytes.subarray(0, Math.max(0, end))).toString("latin1");
    const number = /^OK [0-9]{1,10}$/.test(line) ? BigInt(line.slice(3)) : null;
    if (isOversized) deepStrictEqual(whole.state, "handshake_oversized");
    else if (end < 0) deepStrictEqual(whole.state, "more");
    else if (number === null || number > 0xffff_ffffn) deepStrictEqual(whole.state, "handshake_rejected");
    else
      deepStrictEqual(whole, {
        state: "ok",
        number: Number(number),
        rest: Buffer.from(bytes.subarray(end + 1)),
      });
  },
};

/** The verdict, with all that came behind the line. */
function readAnswer(pieces: Uint8Array[]): HandshakeAnswer {
  const reader = new HandshakeReader();
  for (const [at, piece] of pieces.entries()) {
    const answer = reader.push(piece);
    if (answer.state === "ok") {
      const rest = Buffer.concat([answer.rest, ...pieces.slice(at + 1)]);
      return { ...answer, rest };
    }
    if (answer.state !== "more") return answer;
  }
  return { state: "more" };
}

export const frames: FuzzTarget = {
  name: "frames",
  corpusPath: "../../native/fuzz/corpus/frame_codec",
  words: ["\x05\0\0\0", "\0\0\x10\0", "\x01\0\x10\0", "\xff\xff\xff\xff", "\x04\0\0\0"],
  tries: 100_000,
  check(bytes, rng) {
    const whole = decode([bytes]);
    deepStrictEqual(decode(split(bytes, rng)), whole);
    // What was decoded is what was there, byte for byte.
    const again = Buffer.concat(whole.frames.map(encodeFrame));
    deepStrictEqual(Buffer.from(bytes.subarray(0, again.byteLength)), again);
    const rest = Buffer.from(bytes.subarray(again.byteLength));
    const length = rest.byteLength >= 4 ? rest.readUInt32LE() : null;
    const isInvalid = length !== null && (length < FRAME_OVERHEAD_BYTES || length > MAX_FRAME_BYTES);
    deepStrictEqual(whole.invalidLength, isInvalid ? length : null);
    if (!isInvalid && length !== null) ok(rest.byteLength < 4 + length, "a whole frame was not given out");
  },
};

function decode(pieces: Uint8Array[]): { frames: Frame[]; invalidLength: number | null } {
  const decoder = new FrameDecoder();
  // Copies, so that views of pieces and joined ones compare as equal.
  const decoded = pieces
    .flatMap((piece) => decoder.push(piece))
    .map((frame) => ({ ...frame, payload: Uint8Array.from(frame.payload) }));
  return { frames: decoded, invalidLength: decoder.invalidLength };
}
