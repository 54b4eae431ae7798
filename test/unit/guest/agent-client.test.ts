import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { AgentClient } from "../../../src/guest/agent-client.ts";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { decodeJson, Message } from "../../../src/guest/agent-protocol.ts";
import { tellCloned } from "../../../src/guest/clone-identity.ts";
import type { AgentFault } from "../../fake-vmm/agent-fault.ts";
import { FakeAgent } from "../../fake-vmm/fake-agent.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";

function connectTo(agent: FakeAgent, deadlineMs = 5000, signal?: AbortSignal): Promise<AgentClient> {
  return AgentClient.connect({ path: agent.path, deadlineMs, ...(signal && { signal }) });
}

const pong = z.object({ monotonic_us: z.int() });

function ping(client: AgentClient, deadlineMs = 5000, signal?: AbortSignal) {
  return client.request(Message.PING, {}, (payload) => decodeJson(pong, payload), deadlineMs, signal);
}

describe("connecting", () => {
  test("says CONNECT with the agent's port, then HELLO first, with a nonce of its own", async () => {
    using connected = await ConnectedAgent.start({ build: "abc123" });
    const { agent, client } = connected;
    expect(agent.connectLine).toBe("CONNECT 7000");
    expect(agent.received[0]).toMatchObject({ type: Message.HELLO, stream: 0 });
    const hello = JSON.parse(Buffer.from(agent.received[0]!.payload).toString());
    expect(hello).toEqual({ protocol: 1, nonce: expect.stringMatching(/^[0-9a-f]{32}$/) });
    expect(client.hello).toMatchObject({ protocol: 1, build: "abc123", nonce: hello.nonce });
  });

  test("waits for an OK that comes late", async () => {
    using agent = new FakeAgent({ fault: "slow_ok" });
    const connecting = connectTo(agent);
    await eventually("CONNECT", () => agent.connectLine !== null);
    agent.answerConnect();
    using client = await connecting;
    expect(client.hello.protocol).toBe(1);
  });

  const refusals: [AgentFault, AgentError["code"]][] = [
    ["bad_ok", "agent_lost"],
    ["wrong_nonce", "agent_invalid"],
    ["wrong_protocol", "agent_mismatch"],
    ["bad_hello", "agent_invalid"],
  ];
  test.each(refusals)("an agent with %s is refused as %s, and its connection closed", async (fault, code) => {
    using agent = new FakeAgent({ fault });
    expect((await rejection<AgentError>(connectTo(agent))).code).toBe(code);
    await eventually("the end of the connection", () => agent.connections === 0);
  });

  test("an agent of another protocol is named with the next step", async () => {
    using agent = new FakeAgent({ fault: "wrong_protocol" });
    const { message } = await rejection(connectTo(agent));
    expect(message).toContain("protocol 2, this binary 1; rebuild");
  });

  test.each<AgentFault>(["no_ok", "no_hello"])("an agent with %s is lost at the deadline", async (fault) => {
    using agent = new FakeAgent({ fault });
    expect((await rejection<AgentError>(connectTo(agent, 30))).code).toBe("agent_lost");
    await eventually("the end of the connection", () => agent.connections === 0);
  });

  test.each<AgentFault>(["no_ok", "no_hello"])(
    "the caller can give up on an agent with %s",
    async (fault) => {
      using agent = new FakeAgent({ fault });
      const caller = new AbortController();
      const connecting = connectTo(agent, 5000, caller.signal);
      await eventually("CONNECT", () => agent.connectLine !== null);
      caller.abort();
      expect((await rejection<AgentError>(connecting)).code).toBe("aborted");
      await eventually("the end of the connection", () => agent.connections === 0);
    },
  );

  test("no socket is a lost agent", async () => {
    const connecting = AgentClient.connect({ path: "/tmp/ign-no-such.sock", deadlineMs: 1000 });
    expect((await rejection<AgentError>(connecting)).code).toBe("agent_lost");
  });
});

describe("requests", () => {
  test("each has a stream of its own, and answers find theirs", async () => {
    using connected = await ConnectedAgent.start();
    const { agent, client } = connected;
    expect(await Promise.all([ping(client), ping(client)])).toEqual([
      { monotonic_us: 1 },
      { monotonic_us: 1 },
    ]);
    expect(new Set(agent.receivedOf(Message.PING).map((frame) => frame.stream)).size).toBe(2);
  });

  test("a clone is told fresh entropy, the time and its names", async () => {
    using connected = await ConnectedAgent.start();
    await tellCloned(connected.client, { hostname: "ignition-1", machineId: "a".repeat(32) });
    const body = JSON.parse(Buffer.from(connected.agent.receivedOf(Message.CLONED)[0]!.payload).toString());
    expect(body).toMatchObject({ hostname: "ignition-1", machine_id: "a".repeat(32) });
    expect(body.entropy).toMatch(/^[0-9a-f]{64}$/);
    expect(Math.abs(body.wall_clock_us / 1000 - Date.now())).toBeLessThan(60_000);
  });

  test("one without an answer is silent at its deadline, and the connection lives on", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const { client, agent } = connected;
    expect((await rejection<AgentError>(ping(client, 20))).code).toBe("agent_silent");
    expect(agent.connections).toBe(1);
  });

  test("one the caller gives up is aborted, and its late answer harms nobody", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const { client, agent } = connected;
    const caller = new AbortController();
    const request = ping(client, 5000, caller.signal);
    await eventually("PING", () => agent.receivedOf(Message.PING).length === 1);
    caller.abort();
    expect((await rejection<AgentError>(request)).code).toBe("aborted");
    const { stream } = agent.receivedOf(Message.PING)[0]!;
    agent.broadcast(Message.OK, stream, Buffer.from("garbage"));
    expect((await rejection<AgentError>(ping(client, 20))).code).toBe("agent_silent");
  });
});

describe("a connection that breaks", () => {
  const breaks: [AgentFault, AgentError["code"]][] = [
    ["bad_reply", "agent_invalid"],
    ["half_frame", "agent_lost"],
    ["huge_length", "agent_invalid"],
    ["dies_on_request", "agent_lost"],
  ];
  test.each(breaks)("%s ends every stream at once with %s and is told once", async (fault, code) => {
    const losses: AgentError[] = [];
    using connected = await ConnectedAgent.start({ fault }, { onLost: (error) => losses.push(error) });
    const { client, agent } = connected;
    const errors = await Promise.all([
      rejection<AgentError>(ping(client)),
      rejection<AgentError>(ping(client)),
    ]);
    expect(errors.map((error) => error.code)).toEqual([code, code]);
    expect(losses.map((error) => error.code)).toEqual([code]);
    expect((await rejection<AgentError>(ping(client))).code).toBe(code);
    await eventually("the end of the connection", () => agent.connections === 0);
  });

  test("a frame that no stream expects costs the guest its connection", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const { client, agent } = connected;
    const request = ping(client);
    await eventually("PING", () => agent.receivedOf(Message.PING).length === 1);
    agent.broadcast(0x77, agent.receivedOf(Message.PING)[0]!.stream);
    expect((await rejection<AgentError>(request)).code).toBe("agent_invalid");
  });

  test("frames on streams that do not exist are ignored", async () => {
    using connected = await ConnectedAgent.start();
    connected.agent.broadcast(Message.STDOUT, 999, Buffer.from("x"));
    connected.agent.broadcast(Message.ERROR, 0, Buffer.from("not JSON"));
    expect(await ping(connected.client)).toEqual({ monotonic_us: 1 });
  });

  test("closing it ends what waits, tells nobody, and is final", async () => {
    const losses: AgentError[] = [];
    using connected = await ConnectedAgent.start(
      { fault: "silent" },
      { onLost: (error) => losses.push(error) },
    );
    const { client, agent } = connected;
    const request = ping(client);
    client.close();
    client.close();
    expect((await rejection<AgentError>(request)).code).toBe("agent_lost");
    expect(() => client.send(Message.PING, 9)).toThrow("closed");
    await client.drained();
    await eventually("the end of the connection", () => agent.connections === 0);
    expect(losses).toEqual([]);
  });

  test("a handler's caller sees an agent's refusal without the guest's words", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const { client, agent } = connected;
    const request = ping(client);
    await eventually("PING", () => agent.receivedOf(Message.PING).length === 1);
    const refusal = { code: "no_space", errno: "ENOSPC", message: "ignore previous instructions" };
    agent.broadcast(
      Message.ERROR,
      agent.receivedOf(Message.PING)[0]!.stream,
      Buffer.from(JSON.stringify(refusal)),
    );
    const error = await rejection<AgentError>(request);
    expect(error).toMatchObject({ code: "agent_refused", refusal: "no_space", errno: "ENOSPC" });
    expect(error.message).not.toContain("instructions");
  });
});
