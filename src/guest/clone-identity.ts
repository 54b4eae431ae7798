import { randomBytes } from "node:crypto";
import type { AgentClient } from "./agent-client.ts";
import { decodeDone, Message } from "./agent-protocol.ts";

const CLONED_DEADLINE_MS = 10_000;
const HOST_NAME_SUFFIX_BYTES = 4;

/** What makes one clone differ from every other: sent before anything runs in it. */
export interface CloneIdentity {
  hostname: string;
  /** 32 hex digits, /etc/machine-id */
  machineId: string;
}

export function newCloneIdentity(): CloneIdentity {
  return {
    hostname: `ignition-${randomBytes(HOST_NAME_SUFFIX_BYTES).toString("hex")}`,
    machineId: randomBytes(16).toString("hex"),
  };
}

/** Gives the clone fresh entropy, the present time, and its names. Resolves when all of them took effect. */
export async function tellCloned(
  client: AgentClient,
  identity: CloneIdentity,
  signal?: AbortSignal,
  deadlineMs = CLONED_DEADLINE_MS,
): Promise<void> {
  const body = {
    entropy: randomBytes(32).toString("hex"),
    wall_clock_us: Date.now() * 1000,
    hostname: identity.hostname,
    machine_id: identity.machineId,
  };
  await client.request(Message.CLONED, body, decodeDone, deadlineMs, signal);
}
