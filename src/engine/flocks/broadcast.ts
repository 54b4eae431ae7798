import { atMost } from "../../base/at-most.ts";
import type { Logger } from "../../base/logger.ts";
import { diskFull } from "../disk-full.ts";
import { EngineError } from "../engine-error.ts";
import type { TaskResult, Tasks } from "../tasks/tasks.ts";
import type { VmTable } from "../vms/vm-table.ts";
import type { FlockRecord } from "./flock-record.ts";

/** Tasks of one broadcast that run at the same time */
const AT_ONCE = 8;

/** Of a member that did its task, with all that the task tells */
export interface BroadcastResult extends Partial<TaskResult> {
  status: "ok" | "busy" | "error";
}

/** Gives every member the same prompt and waits for all of them; one that works already is left alone. */
export async function broadcast(
  flock: FlockRecord,
  parts: { vms: VmTable; tasks: Tasks; log: Logger },
  request: { prompt: string; depth: number; signal: AbortSignal },
): Promise<Map<string, BroadcastResult>> {
  const members = Object.values(flock.agents);
  const results = new Map<string, BroadcastResult>();
  await atMost(AT_ONCE, members, async ({ agent_id, vm_id }) => {
    try {
      const result = await parts.tasks.run(parts.vms.get(vm_id), request);
      results.set(agent_id, { status: result.error === undefined ? "ok" : "error", ...result });
    } catch (error) {
      request.signal.throwIfAborted();
      parts.log.warn(
        { err: error, flock_id: flock.flock_id, agent_id },
        "a member has no result of a broadcast",
      );
      results.set(agent_id, failure(diskFull(error) ?? error));
    }
  });
  return new Map(members.map(({ agent_id }) => [agent_id, results.get(agent_id)!]));
}

/** Whatever befell one member, the others' results are told. */
function failure(error: unknown): BroadcastResult {
  if (!(error instanceof EngineError)) return { status: "error", error: (error as Error).message };
  return error.code === "agent_busy" ? { status: "busy" } : { status: "error", error: error.message };
}
