import { expect, test } from "bun:test";
import { FIRST_AGENT_STREAM, MAX_TUNNELS, Message } from "../../../src/guest/agent-protocol.ts";
import { serveTunnels } from "../../../src/guest/serve-tunnels.ts";
import type { Tunnel } from "../../../src/guest/tunnel.ts";
import { encodeFrame } from "../../../src/vsock/frame-codec.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeProxy, readAll } from "./fake-tunnel.ts";

const NEVER = new AbortController().signal;
const { ACCEPTED, CANCEL, DATA, EOF } = Message;

test("each connection of the guest is handed over, with what came at once", async () => {
  const texts: string[] = [];
  using guest = await FakeProxy.start(async (tunnel) => {
    const writer = tunnel.writable.getWriter();
    texts.push(Buffer.from(await readAll(tunnel)).toString());
    await writer.write(Buffer.from("answer"));
    await writer.close();
  });
  for (const index of [0, 1]) {
    guest.accept(index, `hello ${index}`);
    guest.connected.agent.broadcast(EOF, FIRST_AGENT_STREAM + index);
  }
  await eventually(
    "the guest heard of it",
    () => guest.typesOn(1).length === 2 && guest.typesOn(0).length === 2,
  );
  expect(texts.sort()).toEqual(["hello 0", "hello 1"]);
  expect(guest.typesOn(0)).toEqual([DATA, EOF]);
  expect(guest.listens).toEqual([{ on: true }]);
});

test("a handler that throws or rejects costs its own tunnel only, and its reason is there", async () => {
  const tunnels: Tunnel[] = [];
  using guest = await FakeProxy.start((tunnel) => {
    tunnels.push(tunnel);
    if (tunnels.length === 1) throw new Error("thrown");
    if (tunnels.length === 2) return Promise.reject("rejected");
    return;
  });
  for (const index of [0, 1, 2]) guest.accept(index);
  await eventually(
    "the guest heard of it",
    () => guest.typesOn(0).length === 1 && guest.typesOn(1).length === 1,
  );
  expect([0, 1, 2].map((index) => guest.typesOn(index))).toEqual([[CANCEL], [CANCEL], []]);
  const reasons = tunnels.slice(0, 2).map((tunnel) => readAll(tunnel).catch((error) => error.message));
  expect(await Promise.all(reasons)).toEqual(["thrown", "rejected"]);
  guest.accept(3);
  await eventually("the handler has them", () => tunnels.length === 4);
});

test("when the signal aborts the guest stops listening, late connections are cancelled, open ones go on", async () => {
  const tunnels: Tunnel[] = [];
  using guest = await FakeProxy.start((tunnel) => void tunnels.push(tunnel));
  guest.accept(0);
  await eventually("the handler has them", () => tunnels.length === 1);
  guest.serving.abort();
  guest.accept(1);
  await eventually("the guest heard of it", () => guest.typesOn(1).length === 1);
  expect(guest.typesOn(1)).toEqual([CANCEL]);
  expect(guest.listens).toEqual([{ on: true }, { on: false }]);
  await tunnels[0]!.writable.getWriter().write(Buffer.from("x"));
  await eventually("the guest heard of it", () => guest.typesOn(0).length === 1);
  expect(guest.typesOn(0)).toEqual([DATA]);
  expect(tunnels).toHaveLength(1);
});

test("told again, the new handler gets what comes, and the old signal means nothing any more", async () => {
  const seen: string[] = [];
  using guest = await FakeProxy.start(() => void seen.push("old"));
  guest.accept(0);
  await eventually("the handler has them", () => seen.length === 1);
  await serveTunnels(guest.connected.client, () => void seen.push("new"), NEVER);
  guest.serving.abort();
  guest.accept(1);
  await eventually("the handler has them", () => seen.length === 2);
  expect(seen).toEqual(["old", "new"]);
  expect(guest.listens).toEqual([{ on: true }, { on: true }]);
});

test("tunnels that end make room, and one too many at once costs the guest its connection", async () => {
  let handled = 0;
  using guest = await FakeProxy.start(() => void handled++);
  const reset = Buffer.from(JSON.stringify({ code: "reset", errno: null, message: "" }));
  for (let index = 0; index < 10; index++) {
    guest.accept(index);
    guest.connected.agent.broadcast(Message.ERROR, FIRST_AGENT_STREAM + index, reset);
  }
  // How many of the ten had a handler is open, but after this none is to come.
  await guest.settle();
  const before = handled;
  for (let index = 10; index < 10 + MAX_TUNNELS; index++) guest.accept(index);
  await eventually("the handler has them", () => handled >= before + MAX_TUNNELS);
  await guest.settle();
  expect(handled).toBe(before + MAX_TUNNELS);
  guest.accept(5000);
  expect(await guest.lost).toMatchObject({ code: "agent_invalid" });
});

test("a guest that opens and resets tunnels gets no more handlers at once than it may have tunnels", async () => {
  let handled = 0;
  using guest = await FakeProxy.start(() => {
    handled++;
    return new Promise(() => undefined);
  });
  const reset = Buffer.from(JSON.stringify({ code: "reset", errno: null, message: "" }));
  for (let index = 0; index < MAX_TUNNELS; index++) guest.accept(index);
  await eventually("the handler has them", () => handled === MAX_TUNNELS);
  for (let index = 0; index < MAX_TUNNELS; index++)
    guest.connected.agent.broadcast(Message.ERROR, FIRST_AGENT_STREAM + index, reset);
  guest.accept(MAX_TUNNELS);
  await eventually("one too many is refused", () => guest.typesOn(MAX_TUNNELS).length === 1);
  expect(guest.typesOn(MAX_TUNNELS)).toEqual([CANCEL]);
  expect(handled).toBe(MAX_TUNNELS);
});

test("a guest that opens and resets tunnels faster than any program has the most of them reset", async () => {
  const PAIRS = 40_000;
  let handled = 0;
  using guest = await FakeProxy.start(() => void handled++);
  const reset = Buffer.from(JSON.stringify({ code: "reset", errno: null, message: "" }));
  const batch: Uint8Array[] = [];
  for (let index = 0; index < PAIRS; index++) {
    const stream = FIRST_AGENT_STREAM + index;
    batch.push(encodeFrame({ type: ACCEPTED, stream, payload: Buffer.from("{}") }));
    batch.push(encodeFrame({ type: Message.ERROR, stream, payload: reset }));
  }
  guest.connected.agent.broadcastBytes(Buffer.concat(batch));
  await eventually("most to be reset", () => guest.connected.agent.receivedOf(CANCEL).length > PAIRS / 2);
  expect(handled).toBeLessThan(PAIRS / 2);
});

test("a tunnel's end, and its failure, are there for whoever looks at it late", async () => {
  const tunnels: Tunnel[] = [];
  using guest = await FakeProxy.start((tunnel) => void tunnels.push(tunnel));
  guest.accept(0, "last words");
  guest.accept(1);
  guest.accept(2);
  guest.connected.agent.broadcast(EOF, FIRST_AGENT_STREAM);
  guest.connected.agent.broadcast(EOF, FIRST_AGENT_STREAM + 1);
  guest.accept(3);
  // So what was sent before it has arrived.
  await eventually("the handler has them", () => tunnels.length === 4);
  tunnels[2]!.abort(new Error("given up"));
  expect(Buffer.from(await readAll(tunnels[0]!)).toString()).toBe("last words");
  expect(await readAll(tunnels[1]!)).toHaveLength(0);
  await expect(readAll(tunnels[2]!)).rejects.toThrow("given up");
  await expect(tunnels[2]!.writable.getWriter().write(Buffer.from("x"))).rejects.toThrow("given up");
});

test("a tunnel that is reset before its handler runs has none", async () => {
  const seen: Tunnel[] = [];
  using guest = await FakeProxy.start((tunnel) => void seen.push(tunnel));
  const reset = Buffer.from(JSON.stringify({ code: "reset", errno: null, message: "" }));
  const batch = [
    encodeFrame({ type: ACCEPTED, stream: FIRST_AGENT_STREAM, payload: Buffer.from("{}") }),
    encodeFrame({ type: Message.ERROR, stream: FIRST_AGENT_STREAM, payload: reset }),
    encodeFrame({ type: ACCEPTED, stream: FIRST_AGENT_STREAM + 1, payload: Buffer.from("{}") }),
  ];
  guest.connected.agent.broadcastBytes(Buffer.concat(batch));
  await eventually("the handler has one", () => seen.length > 0);
  seen[0]!.abort(new Error("the second one"));
  await eventually("the guest heard of it", () => guest.typesOn(1).length === 1);
  expect(seen).toHaveLength(1);
});

test.each([0, 1, FIRST_AGENT_STREAM - 1])(
  "a stream numbered %s is not the agent's to open",
  async (stream) => {
    using guest = await FakeProxy.start(() => undefined);
    guest.connected.agent.broadcast(ACCEPTED, stream);
    expect(await guest.lost).toMatchObject({ code: "agent_invalid" });
  },
);
