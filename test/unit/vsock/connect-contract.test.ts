import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectFrames } from "../../../src/vsock/frame-connection.ts";
import { VsockError } from "../../../src/vsock/vsock-error.ts";
import { carriers, openPair, Recorder, rejection } from "./carriers.ts";
import { FakePeer, until } from "./fake-peer.ts";

/** The code a connect attempt fails with. */
async function failureCode(connect: ConnectFrames, path: string, deadlineMs = 10_000, signal?: AbortSignal) {
  const handler = new Recorder();
  const options = { path, port: 7000, deadlineMs, handler };
  const error = await rejection(connect(signal === undefined ? options : { ...options, signal }));
  expect(error).toBeInstanceOf(VsockError);
  expect((error as VsockError).message).toContain(path);
  await Bun.sleep(2);
  expect([handler.frames, handler.ends]).toEqual([[], []]);
  return (error as VsockError).code;
}

describe.each(carriers)("connecting with the %s carrier", (_name, connect) => {
  test("accepts an answer that comes byte by byte", async () => {
    using fake = new FakePeer(async (peer) => {
      for (const letter of "OK 12345\n") {
        peer.send(letter);
        await Bun.sleep(1);
      }
    });
    const { connection } = await openPair(connect, fake);
    connection.close();
  });

  test("fails with connect_failed where nothing listens", async () => {
    const directory = mkdtempSync(join(tmpdir(), "vsock-"));
    const path = join(directory, "vsock.sock");
    expect(await failureCode(connect, path)).toBe("connect_failed");
    await Bun.write(path, "");
    expect(await failureCode(connect, path)).toBe("connect_failed");
    rmSync(directory, { recursive: true });
    expect(await failureCode(connect, `/tmp/${"x".repeat(103)}`)).toBe("connect_failed");
  });

  test("fails with connect_failed where a link lies, wherever it leads", async () => {
    using fake = new FakePeer((peer) => peer.send("OK 1\n"));
    const link = `${fake.path}.link`;
    symlinkSync(fake.path, link);
    expect(await failureCode(connect, link)).toBe("connect_failed");
    rmSync(link);
    expect(fake.connections).toEqual([]);
  });

  test("fails with handshake_timeout when the peer is silent", async () => {
    using fake = new FakePeer((peer) => peer.send("OK 1"));
    expect(await failureCode(connect, fake.path, 40)).toBe("handshake_timeout");
    // Its accept may come after the deadline.
    await until(() => fake.connections[0]?.isClosed === true, "the peer to see the end");
  });

  test("fails with handshake_closed when the stream ends before the line", async () => {
    using fake = new FakePeer((peer) => {
      peer.send("OK 1");
      peer.end();
    });
    expect(await failureCode(connect, fake.path)).toBe("handshake_closed");
  });

  test.each(["x".repeat(128), `OK ${"0".repeat(125)}\n`])(
    "fails with handshake_oversized",
    async (answer) => {
      using fake = new FakePeer((peer) => peer.send(answer));
      expect(await failureCode(connect, fake.path)).toBe("handshake_oversized");
      await until(() => fake.connections[0]!.isClosed, "the peer to see the end");
    },
  );

  test.each([
    "\n",
    "OK\n",
    "OK \n",
    "OK 1\r\n",
    "OK -1\n",
    "OK +1\n",
    "OK  1\n",
    "OK 1 \n",
    "ok 1\n",
    "OK 4294967296\n",
    "OK 00000000001\n",
    "OK 1x\n",
    `${"x".repeat(127)}\n`,
    "ERR no such port\n",
  ])("fails with handshake_rejected at %j", async (answer) => {
    using fake = new FakePeer((peer) => peer.send(answer));
    expect(await failureCode(connect, fake.path)).toBe("handshake_rejected");
    await until(() => fake.connections[0]!.isClosed, "the peer to see the end");
  });

  test("fails with aborted before and during the attempt, and ends the socket", async () => {
    using fake = new FakePeer(() => undefined);
    expect(await failureCode(connect, fake.path, 10_000, AbortSignal.abort())).toBe("aborted");
    const controller = new AbortController();
    const code = failureCode(connect, fake.path, 10_000, controller.signal);
    await until(() => fake.connections[0]?.request === "CONNECT 7000\n", "the request");
    controller.abort(new Error("enough"));
    expect(await code).toBe("aborted");
    await until(() => fake.connections[0]!.isClosed, "the peer to see the end");
  });

  test("leaves an open connection alone when the signal aborts", async () => {
    using fake = new FakePeer();
    const controller = new AbortController();
    const { connection, recorder, peer } = await openPair(connect, fake, { signal: controller.signal });
    controller.abort();
    connection.send(1, 1);
    await until(() => peer.frames.length === 1, "a frame after the abort");
    connection.close();
    await until(() => recorder.ends.length === 1, "the end");
    expect(recorder.ends).toEqual([null]);
  });

  test.if(process.getuid?.() === 0)("fails with peer_refused when another user listens", async () => {
    const path = join(tmpdir(), `vsock-stranger-${process.pid}.sock`);
    const listen = `$> = 65534; $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die $!;
      $| = 1; print "ready"; sleep 60`;
    const stranger = Bun.spawn(["perl", "-MIO::Socket::UNIX", "-e", listen, path], { stdout: "pipe" });
    try {
      await stranger.stdout.getReader().read();
      expect(await failureCode(connect, path)).toBe("peer_refused");
    } finally {
      stranger.kill();
      await stranger.exited;
      rmSync(path, { force: true });
    }
  });

  test("leaks no file descriptor", async () => {
    using fake = new FakePeer();
    const cycle = async () => {
      const { connection, recorder } = await openPair(connect, fake);
      connection.send(1, 1);
      connection.close();
      await until(() => recorder.ends.length === 1, "the end");
      await failureCode(connect, `${fake.path}.missing`);
    };
    await cycle();
    const countFds = () => readdirSync("/proc/self/fd").length;
    await until(() => fake.connections.every((peer) => peer.isClosed), "the first to end");
    const before = countFds();
    for (let round = 0; round < 200; round++) await cycle();
    await until(() => fake.connections.every((peer) => peer.isClosed), "all to end");
    await until(() => countFds() <= before, "the descriptors to be closed");
  });
});
