import { expect, test } from "bun:test";
import { ALLOW_ALL, DENY_ALL } from "../../../src/egress/egress-policy.ts";
import { eventually } from "../../support/eventually.ts";
import { GuestEnd, socksTo, socksTunnel, TestGate } from "../../support/proxied-guest.ts";
import { TcpServer } from "../../support/tcp-server.ts";
import { untilStill } from "../../support/until-still.ts";

const MIB = 1_048_576;
/** Longer than it takes to open a tunnel, also on a machine that is busy */
const IDLE_MS = 2000;

test("the guest may end its direction and still hear the answer", async () => {
  using server = await TcpServer.start((socket) => {
    let count = 0;
    socket.on("data", (bytes) => (count += bytes.length));
    socket.on("end", () => socket.end(`${count} bytes`));
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  await guest.send(Buffer.alloc(100_000));
  await guest.end();
  expect(await guest.rest()).toBe("100000 bytes");
  await guest.served;
  expect(gate.lines).toMatchObject([
    {
      destination: `example.com:${server.port}`,
      verdict: "allowed",
      bytes_from_guest: 100_021,
      bytes_to_guest: 24,
    },
  ]);
});

test("the server may end its direction and still hear the guest", async () => {
  let heard = "";
  using server = await TcpServer.start((socket) => {
    socket.end("bye");
    socket.on("data", (bytes) => (heard += bytes));
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  expect(await guest.rest()).toBe("bye");
  await guest.send("still here");
  await eventually("the guest's words", () => heard === "still here");
  await guest.end();
  await guest.served;
  expect(gate.counters.open).toBe(0);
});

test("a server that resets ends the guest's connection", async () => {
  using server = await TcpServer.start((socket) => socket.once("data", () => socket.resetAndDestroy()));
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  await guest.send("x");
  await guest.rest().catch(() => undefined);
  await guest.served;
  expect(gate.lines).toMatchObject([{ verdict: "allowed" }]);
});

test("a guest that does not read holds the server back, and gets everything in the end", async () => {
  const total = 64 * MIB;
  let isSent = false;
  using server = await TcpServer.start((socket) => {
    let left = total;
    const send = () => {
      while (left > 0) {
        left -= MIB;
        if (!socket.write(Buffer.alloc(MIB, 1))) {
          socket.once("drain", send);
          return;
        }
      }
      isSent = true;
      socket.end();
    };
    send();
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  await untilStill(() => server.sockets[0]!.bytesWritten);
  expect(isSent).toBe(false);
  expect(server.sockets[0]!.bytesWritten).toBeLessThan(total / 2);
  expect(await guest.count()).toBe(total);
  await guest.end();
  await guest.served;
});

test("a server that does not read holds the guest back", async () => {
  using server = await TcpServer.start((socket) => socket.pause());
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  let sent = 0;
  const sending = (async () => {
    for (; sent < 64; sent++) await guest.send(Buffer.alloc(MIB));
  })();
  await untilStill(() => sent);
  expect(sent).toBeLessThan(32);
  server.sockets[0]!.resume();
  await sending;
  server.sockets[0]!.end();
  await guest.end();
  await guest.served;
});

test("1,000 tunnels at once each carry their own bytes, and one more than allowed is refused", async () => {
  using server = await TcpServer.start((socket) => socket.pipe(socket));
  using gate = new TestGate({ policy: ALLOW_ALL, limits: { connections: 1000 } });
  const guests = await Promise.all(Array.from({ length: 1000 }, () => socksTunnel(gate, server.port)));
  expect(gate.counters.open).toBe(1000);
  const refused = new GuestEnd(gate);
  await refused.served;
  expect(gate.counters.refused.get("too_many_connections")).toBe(1);
  const answers = guests.map(async (guest, at) => {
    await guest.send(`tunnel ${at};`);
    await guest.end();
    expect(await guest.rest()).toBe(`tunnel ${at};`);
    await guest.served;
  });
  await Promise.all(answers);
  expect(gate.counters).toMatchObject({ open: 0, allowed: 1000 });
});

test("a tunnel that carries nothing is ended, also when one direction has ended", async () => {
  let ended = 0;
  using server = await TcpServer.start((socket) => void socket.resume().on("end", () => ended++));
  using gate = new TestGate({ policy: ALLOW_ALL, limits: { idleMs: IDLE_MS } });
  const [idle, half] = await Promise.all([socksTunnel(gate, server.port), socksTunnel(gate, server.port)]);
  await half.end();
  await Promise.all([idle.served, half.served]);
  expect(gate.counters.open).toBe(0);
  expect(gate.lines.map((line) => line["ended"])).toEqual([
    "nothing was carried for too long",
    "nothing was carried for too long",
  ]);
  await eventually("both to end at the server", () => ended === 2);
});

test("the end of the gate ends its tunnels", async () => {
  using server = await TcpServer.start(() => undefined);
  const gate = new TestGate({ policy: ALLOW_ALL });
  const guest = await socksTunnel(gate, server.port);
  gate[Symbol.dispose]();
  await guest.served;
  await new GuestEnd(gate).served;
  expect(gate.counters.open).toBe(0);
  expect(gate.lines).toMatchObject([{ verdict: "allowed" }, { verdict: "refused", reason: "ended" }]);
});

test("a SOCKS client is told of a refusal in SOCKS", async () => {
  using gate = new TestGate({ policy: DENY_ALL });
  const guest = new GuestEnd(gate);
  await guest.send(Buffer.concat([Buffer.of(5, 1, 0), socksTo(443)]));
  await guest.rest();
  expect(guest.received).toEqual(Buffer.of(5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0));
  await guest.end();
  await guest.served;
});
