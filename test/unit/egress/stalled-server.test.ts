import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { streamsOf } from "../../../src/egress/dial.ts";
import { ALLOW_ALL } from "../../../src/egress/egress-policy.ts";
import { eventually } from "../../support/eventually.ts";
import { type GuestEnd, socksTunnel, TestGate } from "../../support/proxied-guest.ts";
import { TcpServer } from "../../support/tcp-server.ts";
import { untilStill } from "../../support/until-still.ts";

const IDLE = "nothing was carried for too long";
/** Longer than it takes to open a tunnel, also on a machine that is busy */
const IDLE_MS = 2000;

/** A server that ends its own direction and never reads. */
function halfClosed(): Promise<TcpServer> {
  return TcpServer.start((socket) => void socket.pause().end());
}

/** Sends until it is held back for good, and until the connection breaks. */
async function sendForEver(guest: GuestEnd, onSent: () => void = () => undefined): Promise<void> {
  for (;;) {
    await guest.send(Buffer.alloc(65_536));
    onSent();
  }
}

test("a server that has ended its direction and does not read is left when nothing moves any more", async () => {
  using server = await halfClosed();
  using gate = new TestGate({ policy: ALLOW_ALL, limits: { idleMs: IDLE_MS } });
  const guest = await socksTunnel(gate, server.port);
  await expect(sendForEver(guest)).rejects.toThrow();
  await guest.served;
  expect(gate.counters.open).toBe(0);
  expect(gate.lines).toMatchObject([{ verdict: "allowed", ended: IDLE }]);
  let isGone = false;
  server.sockets[0]!.once("close", () => (isGone = true)).resume();
  await eventually("the server to see the end", () => isGone);
}, 20_000);

test("it does not outlive the gate", async () => {
  using server = await halfClosed();
  const gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  let sent = 0;
  const sending = sendForEver(guest, () => sent++);
  sending.catch(() => undefined);
  await untilStill(() => sent);
  gate[Symbol.dispose]();
  await guest.served;
  await expect(sending).rejects.toThrow();
  expect(gate.counters.open).toBe(0);
});

test("a direction has ended when its last byte has left, not when it was written", async () => {
  let sent: () => void = () => undefined;
  const socket = new Duplex({ read() {}, write: (_bytes, _encoding, done) => (sent = done) });
  const { writable, abort } = streamsOf(socket as unknown as Socket);
  const writer = writable.getWriter();
  await writer.write(Buffer.from("last words"));
  let isOver = false;
  const closing = writer.close().then(() => (isOver = true));
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(isOver).toBe(false);
  sent();
  await closing;
  abort!(new Error("over"));
  expect(socket.destroyed).toBe(true);
});

test("a connection whose last bytes nobody takes can be aborted", async () => {
  const socket = new Duplex({ read() {}, write: () => undefined });
  const { writable, abort } = streamsOf(socket as unknown as Socket);
  const writer = writable.getWriter();
  await writer.write(Buffer.from("last words"));
  const closing = writer.close().then(
    () => "closed",
    () => "failed",
  );
  abort!(new Error("over"));
  expect(["closed", "failed"]).toContain(await closing);
  expect(socket.destroyed).toBe(true);
});

test("what guests do not take of their servers' bytes is bounded for all connections together", async () => {
  const CONNECTIONS = 100;
  const chunk = Buffer.alloc(1_048_576);
  using server = await TcpServer.start((socket) => {
    const send = () => {
      while (socket.write(chunk));
      socket.once("drain", send);
    };
    send();
  });
  using gate = new TestGate({ policy: ALLOW_ALL, readRoomBytes: 4 * 1_048_576 });
  const guests = await Promise.all(Array.from({ length: CONNECTIONS }, () => socksTunnel(gate, server.port)));
  await eventually("the room to be full", () => gate.room.heldBytes >= 4 * 1_048_576);
  const written = () => server.sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
  await untilStill(written);
  expect(gate.room.heldBytes).toBeLessThan(5 * 1_048_576);
  await Promise.all(guests.map((guest) => guest.receive(guest.received.byteLength + 262_144)));
  gate[Symbol.dispose]();
  await Promise.all(guests.map((guest) => guest.served));
  await eventually("everything to be given back", () => gate.room.heldBytes === 0);
}, 30_000);
