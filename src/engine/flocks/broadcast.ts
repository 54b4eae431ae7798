import { EngineError } from "../engine-error.ts";
import type { Tasks } from "../tasks/tasks.ts";
import type { VmTable } from "../vms/vm-table.ts";
import type { FlockRecord } from "./flock-record.ts";

/** Tasks of one broadcast that run at the same time */
const AT_ONCE = 8;

export interface BroadcastResult {
  status: "ok" | "busy" | "error";
  output?: string;
  error?: string;
}

/** Gives every member the same prompt and waits for all of them; one that works already is left alone. */
export async function broadcast(
  flock: FlockRecord,
  parts: { vms: VmTable; tasks: Tasks },
  request: { prompt: string; depth: number; signal: AbortSignal },
): Promise<Map<string, BroadcastResult>> {
  const members = Object.values(flock.agents);
  const results = new Map<string, BroadcastResult>();
  const queue = members.values();
  const work = async () => {
    for (const { agent_id, vm_id } of queue) {
      try {
        const { output, error } = await parts.tasks.run(parts.vms.get(vm_id), request);
        results.set(
          agent_id,
          error === undefined ? { status: "ok", output } : { status: "error", output, error },
        );
      } catch (error) {
        request.signal.throwIfAborted();
        results.set(agent_id, failure(error));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return new Map(members.map(({ agent_id }) => [agent_id, results.get(agent_id)!]));
}

function failure(error: unknown): BroadcastResult {
  if (!(error instanceof EngineError)) throw error;
  return error.code === "agent_busy" ? { status: "busy" } : { status: "error", error: error.message };
}
