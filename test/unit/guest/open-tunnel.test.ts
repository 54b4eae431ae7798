import { expect, test } from "bun:test";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { encodeCredit, Message } from "../../../src/guest/agent-protocol.ts";
import { openTunnel } from "../../../src/guest/open-tunnel.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";
import { FakeTunnel, pingThrough, readAll, WINDOW } from "./fake-tunnel.ts";

const NEVER = new AbortController().signal;
const { DATA, EOF, CANCEL, CREDIT, OPEN } = Message;

test("carries bytes both ways, and each direction ends alone", async () => {
  using fake = await FakeTunnel.open();
  const writer = fake.tunnel.writable.getWriter();
  await writer.write(Buffer.from("request"));
  await writer.close();
  await eventually("it came", () => fake.received.types.length === 2);
  expect(fake.received).toEqual({ bytes: 7, text: "request", types: [DATA, EOF] });
  fake.send("ans");
  fake.send("wer");
  fake.say(EOF);
  expect(Buffer.from(await readAll(fake.tunnel)).toString()).toBe("answer");
  // Its stream is no more: what crosses its end is no violation.
  fake.send("late");
  expect(await fake.connected.client.request(Message.PING, {}, () => "pong", 60_000)).toBe("pong");
});

test("names the port, and tells a refusal with its errno", async () => {
  using connected = await ConnectedAgent.start({
    refusesOpen: { code: "connect_failed", errno: "ECONNREFUSED" },
  });
  const error = await rejection<AgentError>(openTunnel(connected.client, 8080, NEVER));
  expect(error).toMatchObject({ code: "agent_refused", refusal: "connect_failed", errno: "ECONNREFUSED" });
  expect(JSON.parse(Buffer.from(connected.agent.receivedOf(OPEN)[0]!.payload).toString())).toEqual({
    port: 8080,
  });
});

test("is given up with the caller, and by an agent that stays silent", async () => {
  using connected = await ConnectedAgent.start({ fault: "silent" });
  const caller = new AbortController();
  const opening = rejection<AgentError>(openTunnel(connected.client, 1, caller.signal));
  caller.abort();
  expect((await opening).code).toBe("aborted");
  expect((await rejection<AgentError>(openTunnel(connected.client, 1, NEVER, 20))).code).toBe("agent_silent");
  await eventually("CANCEL came", () => connected.agent.receivedOf(CANCEL).length === 2);
});

test("is not asked of an agent that has no tunnels", async () => {
  using connected = await ConnectedAgent.start({ features: "run put get" });
  const error = await rejection<AgentError>(openTunnel(connected.client, 1, NEVER));
  expect(error.code).toBe("agent_mismatch");
  expect(connected.agent.receivedOf(OPEN)).toBeEmpty();
});

test("the guest may send more only when what it sent was read, and many small pieces become one", async () => {
  using fake = await FakeTunnel.open();
  for (let at = 0; at < WINDOW / 16; at++) fake.send("0123456789abcdef");
  const reader = fake.tunnel.readable.getReader();
  await pingThrough(fake.connected);
  expect(fake.received.types).toBeEmpty();
  const { value } = await reader.read();
  expect(value?.byteLength).toBe(WINDOW);
  await eventually("it came", () => fake.received.types.length === 1);
  const [credit] = fake.connected.agent.receivedOf(CREDIT);
  expect(credit?.payload).toEqual(Buffer.from(encodeCredit(WINDOW)));
  fake.send(WINDOW);
  expect((await reader.read()).value?.byteLength).toBe(WINDOW);
});

test("no more is sent than the guest granted", async () => {
  using fake = await FakeTunnel.open();
  const writer = fake.tunnel.writable.getWriter();
  const writing = writer.write(new Uint8Array(3 * WINDOW));
  await eventually("it came", () => fake.received.bytes === WINDOW);
  fake.grant(WINDOW);
  await eventually("it came", () => fake.received.bytes === 2 * WINDOW);
  fake.grant(WINDOW);
  await writing;
  await eventually("it came", () => fake.received.bytes === 3 * WINDOW);
});

test("abort resets the guest's side and fails both streams with the reason, what waits included", async () => {
  using fake = await FakeTunnel.open();
  const writer = fake.tunnel.writable.getWriter();
  const writing = rejection<Error>(writer.write(new Uint8Array(2 * WINDOW)));
  const reading = rejection<Error>(readAll(fake.tunnel));
  await eventually("it came", () => fake.received.bytes === WINDOW);
  const reason = new Error("not allowed");
  fake.tunnel.abort(reason);
  fake.tunnel.abort(new Error("a second one does nothing"));
  expect(await writing).toBe(reason);
  expect(await reading).toBe(reason);
  await eventually("CANCEL came", () => fake.received.types.at(-1) === CANCEL);
  fake.send("late");
  expect(await fake.connected.client.request(Message.PING, {}, () => "pong", 60_000)).toBe("pong");
});

test("aborting the writable is a reset too", async () => {
  using fake = await FakeTunnel.open();
  await fake.tunnel.writable.abort(new Error("no"));
  expect((await rejection<Error>(readAll(fake.tunnel))).message).toBe("no");
  await eventually("CANCEL came", () => fake.received.types.at(-1) === CANCEL);
});

test("a reset by the guest and the loss of the agent fail both streams with the cause", async () => {
  for (const end of ["reset", "lost"]) {
    using fake = await FakeTunnel.open();
    const reading = rejection<AgentError>(readAll(fake.tunnel));
    const writing = rejection<AgentError>(fake.tunnel.writable.getWriter().write(new Uint8Array(2 * WINDOW)));
    await eventually("it came", () => fake.received.bytes === WINDOW);
    const refusal = { code: "reset", errno: "ECONNRESET", message: "" };
    if (end === "reset") fake.say(Message.ERROR, Buffer.from(JSON.stringify(refusal)));
    else fake.connected.agent.dropConnections();
    const expected = end === "reset" ? { refusal: "reset", errno: "ECONNRESET" } : { code: "agent_lost" };
    expect(await reading).toMatchObject(expected);
    expect(await writing).toMatchObject(expected);
  }
});

test("a reader that has enough is told to the guest once everything was sent, and not before", async () => {
  using fake = await FakeTunnel.open();
  await fake.tunnel.readable.cancel();
  fake.send("nobody reads this");
  const writer = fake.tunnel.writable.getWriter();
  await writer.write(Buffer.from("answer"));
  await writer.close();
  await eventually("it came", () => fake.received.types.length === 3);
  expect(fake.received).toEqual({ bytes: 6, text: "answer", types: [DATA, EOF, CANCEL] });
});

test("nothing is sent while the guest is held, and nothing is lost", async () => {
  using fake = await FakeTunnel.open();
  await fake.connected.client.hold();
  const writer = fake.tunnel.writable.getWriter();
  void writer.write(Buffer.from("held"));
  await Bun.sleep(20);
  expect(fake.received.bytes).toBe(0);
  await fake.connected.client.release(0);
  await writer.close();
  await eventually("it came", () => fake.received.types.at(-1) === EOF);
  expect(fake.received.text).toBe("held");
});

const empty = new Uint8Array(0);
test.each<[string, (fake: FakeTunnel) => void]>([
  ["more than was granted", (fake) => [1, 2, 3].forEach(() => void fake.send(30_000))],
  ["DATA without bytes", (fake) => fake.say(DATA, empty)],
  ["DATA behind EOF", (fake) => [EOF, DATA].forEach((type) => void fake.say(type, Buffer.from("x")))],
  ["a second EOF", (fake) => [EOF, EOF].forEach((type) => void fake.say(type))],
  ["more credit than a window", (fake) => fake.grant(1)],
  ["credit that is no number", (fake) => fake.say(CREDIT, empty)],
  ["output of a run", (fake) => fake.say(Message.STDOUT, Buffer.from("x"))],
  ["a stream on one in use", (fake) => fake.say(Message.ACCEPTED)],
  ["a stream that nobody waits for", (fake) => fake.say(Message.ACCEPTED, empty, 0x8000_0000)],
])("%s costs the guest its connection", async (_, breakIt) => {
  using fake = await FakeTunnel.open();
  breakIt(fake);
  expect(await fake.lost).toMatchObject({ code: "agent_invalid" });
});
