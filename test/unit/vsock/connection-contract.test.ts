import { describe, expect, test } from "bun:test";
import { encodeFrame } from "../../../src/vsock/frame-codec.ts";
import {
  MAX_FRAME_BYTES,
  MAX_PAYLOAD_BYTES,
  SEND_HIGH_WATER_BYTES,
} from "../../../src/vsock/frame-connection.ts";
import { carriers, openPair, patterned } from "./carriers.ts";
import { FakePeer, until } from "./fake-peer.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const frame = (type: number, stream: number, payload: Uint8Array) => encodeFrame({ type, stream, payload });
const lengthOnly = (length: number) => new Uint8Array(new Uint32Array([length]).buffer);

describe.each(carriers)("a %s connection", (_name, connect) => {
  test("says CONNECT, then carries frames both ways", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    using _ = connection;
    expect(peer.request).toBe("CONNECT 7000\n");
    expect(connection.send(0x10, 0xffff_ffff, bytes("request"))).toBe(true);
    expect(connection.send(0x14, 3)).toBe(true);
    await until(() => peer.frames.length === 2, "both frames at the peer");
    expect(peer.frames.map(({ type, stream }) => [type, stream])).toEqual([
      [0x10, 0xffff_ffff],
      [0x14, 3],
    ]);
    expect(Buffer.from(peer.frames[0]!.payload).toString()).toBe("request");
    expect(peer.frames[1]!.payload.byteLength).toBe(0);
    peer.send(frame(0x80, 7, bytes("answer")), frame(0xff, 0, new Uint8Array(0)));
    await until(() => recorder.frames.length === 2, "both frames here");
    expect(recorder.frames).toEqual([
      { type: 0x80, stream: 7, payload: bytes("answer") },
      { type: 0xff, stream: 0, payload: new Uint8Array(0) },
    ]);
    expect(connection.pendingBytes).toBe(0);
  });

  test("delivers frames that come together with the answer after the connect resolved", async () => {
    using fake = new FakePeer((peer) =>
      peer.send(
        Buffer.concat([bytes("OK 4294967295\n"), frame(1, 2, bytes("first")), frame(1, 3, bytes("second"))]),
      ),
    );
    const { connection, recorder } = await openPair(connect, fake);
    using _ = connection;
    expect(recorder.frames).toEqual([]);
    await until(() => recorder.frames.length === 2, "the coalesced frames");
    expect(recorder.frames.map(({ stream }) => stream)).toEqual([2, 3]);
  });

  test("lets the sender reuse a payload as soon as send returns", async () => {
    using fake = new FakePeer();
    const { connection, peer } = await openPair(connect, fake);
    using _ = connection;
    for (const sizeBytes of [100, 100_000, MAX_PAYLOAD_BYTES]) {
      const payload = patterned(sizeBytes, sizeBytes);
      connection.send(1, sizeBytes, payload);
      payload.fill(0);
    }
    await until(() => peer.frames.length === 3, "three frames at the peer");
    for (const { stream, payload } of peer.frames) {
      expect(Buffer.compare(payload, patterned(stream, stream))).toBe(0);
    }
  });

  test("keeps order and content of frames of the largest size both ways", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    using _ = connection;
    for (let seed = 0; seed < 6; seed++) {
      connection.send(2, seed, patterned(MAX_PAYLOAD_BYTES - seed, seed));
      peer.send(frame(2, seed, patterned(MAX_PAYLOAD_BYTES - seed, seed)), frame(3, seed, bytes("small")));
    }
    await until(() => recorder.frames.length === 12 && peer.frames.length === 6, "all frames");
    const large = [...recorder.frames.filter(({ type }) => type === 2), ...peer.frames];
    for (const [at, { stream, payload }] of large.entries()) {
      expect(stream).toBe(at % 6);
      expect(Buffer.compare(payload, patterned(MAX_PAYLOAD_BYTES - stream, stream))).toBe(0);
    }
  });

  test("refuses a payload that does not fit, and goes on", async () => {
    using fake = new FakePeer();
    const { connection, peer } = await openPair(connect, fake);
    using _ = connection;
    const oversized = new Uint8Array(MAX_PAYLOAD_BYTES + 1);
    expect(() => connection.send(1, 1, oversized)).toThrow(
      expect.objectContaining({ code: "frame_invalid" }),
    );
    connection.send(1, 1);
    await until(() => peer.frames.length === 1, "the next frame");
  });

  test.each([0, 4, MAX_FRAME_BYTES + 1, 0xffff_ffff])(
    "ends with frame_invalid at length %d",
    async (length) => {
      using fake = new FakePeer();
      const { recorder, peer } = await openPair(connect, fake);
      peer.send(frame(1, 1, bytes("before")), lengthOnly(length), frame(1, 1, bytes("behind")));
      await until(() => recorder.ends.length === 1, "the end");
      expect(recorder.ends[0]).toMatchObject({ code: "frame_invalid" });
      expect(recorder.frames).toEqual([{ type: 1, stream: 1, payload: bytes("before") }]);
      await until(() => peer.isClosed, "the peer to see the end");
    },
  );

  test.each([
    ["inside a header", frame(1, 1, bytes("cut")).subarray(0, 6)],
    ["inside a payload", frame(1, 1, bytes("cut")).subarray(0, 11)],
    ["between frames", new Uint8Array(0)],
  ])("ends with connection_lost when the stream ends %s", async (_where, piece) => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    peer.send(frame(1, 1, bytes("whole")), piece);
    peer.end();
    await until(() => recorder.ends.length === 1, "the end");
    expect(recorder.ends[0]).toMatchObject({ code: "connection_lost" });
    expect(recorder.frames.length).toBe(1);
    expect(() => connection.send(1, 1)).toThrow(expect.objectContaining({ code: "closed" }));
    connection.close();
    await Bun.sleep(5);
    expect(recorder.ends.length).toBe(1);
  });

  test("calls onClose(null) once, last and not from inside close", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    connection.send(1, 1, bytes("still sent"));
    peer.send(frame(1, 1, bytes("may be lost")));
    connection.close();
    expect(recorder.ends).toEqual([]);
    connection.close();
    connection[Symbol.dispose]();
    await until(() => peer.isClosed, "the peer to see the end");
    await Bun.sleep(5);
    expect(recorder.ends).toEqual([null]);
    expect(recorder.callsAfterEnd).toBe(0);
    expect(peer.frames.length).toBe(1);
    expect(connection.pendingBytes).toBe(0);
    expect(() => connection.send(1, 1)).toThrow(expect.objectContaining({ code: "closed" }));
  });

  test("may be closed from its own handler", async () => {
    using fake = new FakePeer((peer) => peer.send("OK 1\n"));
    const ends: (Error | null)[] = [];
    let batches = 0;
    const connection = await connect({
      path: fake.path,
      port: 7000,
      deadlineMs: 10_000,
      handler: {
        onFrames: () => {
          batches++;
          connection.close();
        },
        onClose: (error) => ends.push(error),
      },
    });
    fake.connections[0]!.send(frame(1, 1, bytes("one")));
    await until(() => ends.length === 1, "the end");
    expect(ends).toEqual([null]);
    expect(batches).toBe(1);
  });

  test("holds frames and the end back while paused", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    connection.pause();
    peer.send(frame(1, 1, bytes("held")));
    peer.end();
    await Bun.sleep(20);
    expect(recorder.frames).toEqual([]);
    expect(recorder.ends).toEqual([]);
    connection.resume();
    expect(recorder.frames).toEqual([]);
    await until(() => recorder.ends.length === 1, "the end");
    expect(recorder.frames.length).toBe(1);
    expect(recorder.ends[0]).toMatchObject({ code: "connection_lost" });
  });

  test("stops reading above the high-water mark while paused, and loses nothing", async () => {
    using fake = new FakePeer();
    const highWaterBytes = 1_048_576;
    const { connection, recorder, peer } = await openPair(connect, fake, { highWaterBytes });
    using _ = connection;
    connection.pause();
    const payload = patterned(65_536, 1);
    const totalBytes = 64 * 1_048_576;
    const frameCount = totalBytes / payload.byteLength;
    peer.send(...Array.from({ length: frameCount }, (_, stream) => frame(1, stream, payload)));
    let lastQueuedBytes = -1;
    await until(() => {
      const isStill = peer.queuedBytes === lastQueuedBytes;
      lastQueuedBytes = peer.queuedBytes;
      return isStill;
    }, "the peer to be stopped");
    expect(recorder.frames).toEqual([]);
    // The mark, one read above it, and what the kernel holds.
    expect(totalBytes - peer.queuedBytes).toBeLessThan(highWaterBytes + 2 * 1_048_576);
    connection.resume();
    await until(() => recorder.frames.length === frameCount, "all frames");
    expect(recorder.frames.map(({ stream }) => stream)).toEqual(
      Array.from({ length: frameCount }, (_, at) => at),
    );
    expect(recorder.frames.every((one) => Buffer.compare(one.payload, payload) === 0)).toBe(true);
  });

  test("tells a fast sender to wait, and when to go on", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    using _ = connection;
    peer.pause();
    const payload = patterned(MAX_PAYLOAD_BYTES, 9);
    let sent = 1;
    while (connection.send(1, sent, payload)) sent++;
    expect(connection.pendingBytes).toBeGreaterThan(SEND_HIGH_WATER_BYTES);
    expect(connection.pendingBytes).toBeLessThan(SEND_HIGH_WATER_BYTES + 2 * MAX_FRAME_BYTES);
    expect(recorder.drains).toBe(0);
    peer.resume();
    await until(() => recorder.drains === 1, "the drain");
    expect(connection.pendingBytes).toBe(0);
    await until(() => peer.frames.length === sent, "all frames at the peer");
    expect(peer.frames.every((one) => Buffer.compare(one.payload, payload) === 0)).toBe(true);
  });

  test("owes a drain for small frames too", async () => {
    using fake = new FakePeer();
    const { connection, recorder, peer } = await openPair(connect, fake);
    using _ = connection;
    peer.pause();
    const payload = new Uint8Array(1000);
    let sent = 1;
    while (connection.send(1, sent, payload)) sent++;
    peer.resume();
    await until(() => recorder.drains === 1, "the drain");
    await until(() => peer.frames.length === sent, "all frames at the peer");
  });

  test("serves many connections at once", async () => {
    using fake = new FakePeer();
    const pairs = await Promise.all(Array.from({ length: 120 }, () => openPair(connect, fake)));
    for (const [at, { connection }] of pairs.entries()) connection.send(1, at, patterned(2000, at));
    await until(() => fake.connections.every((peer) => peer.frames.length === 1), "a frame on each");
    for (const peer of fake.connections) {
      const { stream, payload } = peer.frames[0]!;
      expect(Buffer.compare(payload, patterned(2000, stream))).toBe(0);
      peer.send(frame(2, stream, payload));
    }
    await until(() => pairs.every(({ recorder }) => recorder.frames.length === 1), "an answer on each");
    for (const [at, { connection, recorder }] of pairs.entries()) {
      expect(recorder.frames[0]!.stream).toBe(at);
      connection.close();
    }
    await until(() => pairs.every(({ recorder }) => recorder.ends.length === 1), "all ends");
  });
});
