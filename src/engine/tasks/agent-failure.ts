import { AgentError } from "../../guest/agent-error.ts";
import { VmError } from "../../vm/vm-error.ts";
import { agentUnreachable } from "../vms/engine-vm.ts";

/** What a failed call to the agent means to the client: 502 when it was lost, the signal's reason when that ended it. */
export function agentFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof AgentError && error.code !== "agent_refused")
    return agentUnreachable(error.message, error);
  if (error instanceof VmError && error.code === "closed") return agentUnreachable(error.message, error);
  return error;
}
