import { describe, expect, test } from "bun:test";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { INITIAL_CREDIT_BYTES, Message } from "../../../src/guest/agent-protocol.ts";
import { getFile, putFile } from "../../../src/guest/transfer-file.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";

const NEVER = new AbortController().signal;
const MIB = 1_048_576;
const WHOLE = { offset: 0, bytes: null, limitBytes: 64 * MIB };

function pattern(bytes: number): Buffer {
  return Buffer.alloc(bytes, "a line of thirty-one characters\n");
}

function dataBytes({ agent }: ConnectedAgent): number {
  return agent.receivedOf(Message.DATA).reduce((sum, frame) => sum + frame.payload.byteLength, 0);
}

describe("putting a file", () => {
  test.each([0, 1, MIB, 5 * MIB + 3])("of %d bytes stores every one", async (bytes) => {
    using connected = await ConnectedAgent.start();
    await putFile(connected.client, "/root/a file", pattern(bytes), NEVER);
    expect(pattern(bytes).equals(connected.agent.files.get("/root/a file")!)).toBe(true);
  });

  test("sends no more than its credit when none is granted, and can then be cancelled", async () => {
    using connected = await ConnectedAgent.start({ grants: false });
    const caller = new AbortController();
    const putting = putFile(connected.client, "/f", pattern(3 * MIB), caller.signal);
    await eventually("the credit's end", () => dataBytes(connected) >= INITIAL_CREDIT_BYTES);
    caller.abort();
    expect((await rejection<AgentError>(putting)).code).toBe("aborted");
    await eventually("CANCEL", () => connected.agent.receivedOf(Message.CANCEL).length === 1);
    expect(dataBytes(connected)).toBe(INITIAL_CREDIT_BYTES);
    expect(connected.agent.files.size).toBe(0);
    await putFile(connected.client, "/g", pattern(10), NEVER);
    expect(connected.agent.files.has("/g")).toBe(true);
  });

  test("that the guest refuses ends at once, though not all of it was sent", async () => {
    using connected = await ConnectedAgent.start();
    const error = await rejection<AgentError>(putFile(connected.client, "/etc/", pattern(8 * MIB), NEVER));
    expect(error).toMatchObject({ code: "agent_refused", refusal: "is_directory", errno: "EISDIR" });
    expect(dataBytes(connected)).toBeLessThanOrEqual(INITIAL_CREDIT_BYTES);
  });

  test("fails when the agent is lost", async () => {
    using connected = await ConnectedAgent.start({ fault: "dies_on_request" });
    expect((await rejection<AgentError>(putFile(connected.client, "/f", pattern(9), NEVER))).code).toBe(
      "agent_lost",
    );
  });

  test("fails at once when the agent says it stored a file that it does not have yet", async () => {
    using connected = await ConnectedAgent.start({ grants: false });
    const putting = putFile(connected.client, "/f", pattern(3 * MIB), NEVER);
    await eventually("the credit's end", () => dataBytes(connected) >= INITIAL_CREDIT_BYTES);
    const { stream } = connected.agent.receivedOf(Message.PUT)[0]!;
    connected.agent.broadcast(Message.OK, stream, Buffer.from(JSON.stringify({ bytes: 3 * MIB })));
    expect((await rejection<AgentError>(putting)).code).toBe("agent_invalid");
  });

  test("fails when the agent says it stored another number of bytes", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const putting = putFile(connected.client, "/f", pattern(9), NEVER);
    await eventually("PUT", () => connected.agent.receivedOf(Message.PUT).length === 1);
    const { stream } = connected.agent.receivedOf(Message.PUT)[0]!;
    connected.agent.broadcast(Message.OK, stream, Buffer.from('{"bytes":8}'));
    expect((await rejection<AgentError>(putting)).code).toBe("agent_invalid");
  });
});

describe("getting a file", () => {
  test.each([0, 5, 5 * MIB + 3])("of %d bytes brings every one, granting as it goes", async (bytes) => {
    using connected = await ConnectedAgent.start();
    connected.agent.files.set("/f", pattern(bytes));
    const { content, fileBytes } = await getFile(connected.client, "/f", WHOLE, NEVER);
    expect(pattern(bytes).equals(content)).toBe(true);
    expect(fileBytes).toBe(bytes);
  });

  test("in part asks for no more than the range and the limit", async () => {
    using connected = await ConnectedAgent.start();
    connected.agent.files.set("/f", Buffer.from("0123456789"));
    const range = { offset: 2, bytes: 5, limitBytes: 3 };
    const { content, fileBytes } = await getFile(connected.client, "/f", range, NEVER);
    expect(Buffer.from(content).toString()).toBe("234");
    expect(fileBytes).toBe(10);
  });

  test("that is not there is refused", async () => {
    using connected = await ConnectedAgent.start();
    const error = await rejection<AgentError>(getFile(connected.client, "/none", WHOLE, NEVER));
    expect(error).toMatchObject({ code: "agent_refused", refusal: "not_found", errno: "ENOENT" });
  });

  test("can be cancelled, and what still comes is dropped", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const caller = new AbortController();
    const getting = getFile(connected.client, "/f", WHOLE, caller.signal);
    await eventually("GET", () => connected.agent.receivedOf(Message.GET).length === 1);
    caller.abort();
    expect((await rejection<AgentError>(getting)).code).toBe("aborted");
    await eventually("CANCEL", () => connected.agent.receivedOf(Message.CANCEL).length === 1);
    connected.agent.broadcast(Message.DATA, connected.agent.receivedOf(Message.GET)[0]!.stream, pattern(9));
    expect(connected.agent.connections).toBe(1);
  });

  test("of which more comes than was asked for costs the guest its connection", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const getting = getFile(connected.client, "/f", { offset: 0, bytes: 4, limitBytes: 100 }, NEVER);
    await eventually("GET", () => connected.agent.receivedOf(Message.GET).length === 1);
    connected.agent.broadcast(Message.DATA, connected.agent.receivedOf(Message.GET)[0]!.stream, pattern(5));
    expect((await rejection<AgentError>(getting)).code).toBe("agent_invalid");
  });
});
