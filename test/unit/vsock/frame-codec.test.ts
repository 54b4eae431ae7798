import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encodeFrame, FrameDecoder } from "../../../src/vsock/frame-codec.ts";
import type { Frame } from "../../../src/vsock/frame-connection.ts";
import { MAX_PAYLOAD_BYTES } from "../../../src/vsock/frame-connection.ts";
import { connectTwin } from "../../../src/vsock/twin-connect.ts";
import { carriers, openPair } from "./carriers.ts";
import { FakePeer, until } from "./fake-peer.ts";

const SEED = 20_240_611;

const frames: fc.Arbitrary<Frame[]> = fc.array(
  fc.record({
    type: fc.integer({ min: 0, max: 255 }),
    stream: fc.integer({ min: 0, max: 0xffff_ffff }),
    payload: fc.uint8Array({ maxLength: 300 }),
  }),
  { maxLength: 20 },
);
const cuts = fc.array(fc.integer({ min: 0, max: 4000 }), { maxLength: 30 });

function cutAt(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const sorted = [0, ...places.filter((place) => place < bytes.byteLength), bytes.byteLength].sort(
    (a, b) => a - b,
  );
  return sorted.slice(1).map((end, at) => bytes.slice(sorted[at]!, end));
}

function decode(pieces: Uint8Array[]) {
  const decoder = new FrameDecoder();
  const decoded = pieces.flatMap((piece) => decoder.push(piece));
  return { frames: decoded, invalidLength: decoder.invalidLength, isMidFrame: decoder.isMidFrame };
}

describe("the frame decoder", () => {
  test("gives back what was encoded, however the stream is split", () => {
    fc.assert(
      fc.property(frames, cuts, (sent, places) => {
        const decoded = decode(cutAt(Buffer.concat(sent.map(encodeFrame)), places));
        expect(decoded).toEqual({ frames: sent, invalidLength: null, isMidFrame: false });
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  test("judges any bytes the same, however they are split", () => {
    fc.assert(
      fc.property(frames, fc.uint8Array({ maxLength: 40 }), cuts, (sent, tail, places) => {
        const bytes = Buffer.concat([...sent.map(encodeFrame), tail]);
        const whole = decode([new Uint8Array(bytes)]);
        const split = decode(cutAt(bytes, places));
        expect([split.frames, split.invalidLength]).toEqual([whole.frames, whole.invalidLength]);
        if (whole.invalidLength === null) expect(split.isMidFrame).toBe(whole.isMidFrame);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  test("refuses to encode a payload that does not fit", () => {
    const payload = new Uint8Array(MAX_PAYLOAD_BYTES + 1);
    expect(() => encodeFrame({ type: 1, stream: 1, payload })).toThrow(RangeError);
  });
});

/** Sends the pieces apart and returns what the connection made of them. */
async function carried(connect: typeof connectTwin, pieces: Uint8Array[]) {
  using fake = new FakePeer();
  const { recorder, peer } = await openPair(connect, fake);
  for (const piece of pieces) {
    peer.send(piece);
    await new Promise((done) => setImmediate(done));
  }
  peer.end();
  await until(() => recorder.ends.length === 1, "the end");
  const error = recorder.ends[0] as Error & { code: string };
  return { frames: recorder.frames, code: error.code, cause: String(error.cause) };
}

test("both carriers make the same of any bytes", async () => {
  const native = carriers.find(([name]) => name === "native")![1];
  await fc.assert(
    fc.asyncProperty(frames, fc.uint8Array({ maxLength: 20 }), cuts, async (sent, tail, places) => {
      const pieces = cutAt(Buffer.concat([...sent.map(encodeFrame), tail]), places);
      expect(await carried(native, pieces)).toEqual(await carried(connectTwin, pieces));
    }),
    { seed: SEED, numRuns: 60 },
  );
});
