import { expect, test } from "bun:test";
import { z } from "zod";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { decodeJson, Message } from "../../../src/guest/agent-protocol.ts";
import { runCommand } from "../../../src/guest/run-command.ts";
import { putFile } from "../../../src/guest/transfer-file.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";

const NEVER = new AbortController().signal;
const COMMAND = { stdin: null, cwd: null, timeoutMs: 1000, maxOutputBytes: 0 };

function types({ agent }: ConnectedAgent): number[] {
  return agent.received.map(({ type }) => type);
}

test("nothing is sent behind HOLD until the release, which comes before all that waited", async () => {
  using connected = await ConnectedAgent.start();
  const { agent, client } = connected;
  await client.hold();
  const command = new TextEncoder().encode("x");
  const running = runCommand(client, { ...COMMAND, command }, NEVER);
  await Bun.sleep(20);
  expect(types(connected)).toEqual([Message.HELLO, Message.HOLD]);
  await client.release(1234.5);
  await running;
  expect(types(connected).slice(2)).toEqual([Message.RELEASE, Message.RUN, Message.COMMAND]);
  const body = Buffer.from(agent.receivedOf(Message.RELEASE)[0]!.payload).toString();
  expect(JSON.parse(body)).toEqual({ paused_us: 1235 });
});

test("a transfer waits, and goes on", async () => {
  using connected = await ConnectedAgent.start();
  const content = new Uint8Array(5_000_000).fill(7);
  const putting = putFile(connected.client, "/f", content, NEVER);
  await connected.client.hold();
  await Bun.sleep(20);
  const sent = connected.agent.received.length;
  await Bun.sleep(20);
  expect(connected.agent.received.length).toBe(sent);
  await connected.client.release(0);
  await putting;
  expect(connected.agent.files.get("/f")).toEqual(content);
});

test("an agent that refuses to hold still gets what waited", async () => {
  using connected = await ConnectedAgent.start({ refusesHold: true });
  const holding = rejection<AgentError>(connected.client.hold());
  const command = new TextEncoder().encode("x");
  const running = runCommand(connected.client, { ...COMMAND, command }, NEVER);
  expect((await holding).code).toBe("agent_refused");
  await running;
});

test("the end of a held connection ends what waits", async () => {
  using connected = await ConnectedAgent.start();
  await connected.client.hold();
  const pong = z.object({ monotonic_us: z.int() });
  const waiting = rejection<AgentError>(
    connected.client.request(Message.PING, {}, (payload) => decodeJson(pong, payload), 5000),
  );
  connected.agent.dropConnections();
  expect((await waiting).code).toBe("agent_lost");
  expect((await rejection<AgentError>(connected.client.release(0))).code).toBe("agent_lost");
});
