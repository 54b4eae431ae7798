import type { AgentClient } from "./agent-client.ts";
import { decodeDone, Message } from "./agent-protocol.ts";

/** Resolves when the guest has started a program and seen its end; rejects with `agent_refused` where it cannot. */
export async function probeGuest(
  client: AgentClient,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<void> {
  await client.request(Message.PROBE, {}, decodeDone, deadlineMs, signal);
}
