import { AgentError } from "../guest/agent-error.ts";
import { VmError } from "../vm/vm-error.ts";
import { claimReason, withStep } from "./claim-failure.ts";
import type { Session } from "./session.ts";
import { SessionError } from "./session-error.ts";
import type { CallContext } from "./session-service.ts";
import type { TakenCheckpoint } from "./vm-source.ts";

/** Makes a checkpoint of a session, which goes on whatever comes of it. */
export async function checkpointSession(session: Session, call: CallContext): Promise<TakenCheckpoint> {
  try {
    return await session.use(call.signal, (vm, signal) => vm.checkpoint(signal));
  } catch (error) {
    if (error instanceof SessionError) throw error;
    if (error instanceof VmError && error.code === "checkpoint_cap")
      throw new SessionError("checkpoint_cap", error.message, error);
    throw new SessionError(
      "checkpoint_failed",
      `session ${session.id} goes on, but no checkpoint of it could be made: ${reasonOf(error)}`,
      error,
    );
  }
}

/** Why no session could be forked from a checkpoint. */
export function forkFailure(error: unknown): SessionError {
  if (error instanceof SessionError) return error;
  if (error instanceof VmError && error.code === "checkpoint_missing")
    return new SessionError("unknown_checkpoint", error.message, error);
  const what = `no session could be forked: ${reasonOf(error)}`;
  return new SessionError("fork_failed", withStep(what, error, "Try again"), error);
}

/** The guest's own words, which an agent's refusal carries, stay out of the sentence. */
function reasonOf(error: unknown): string {
  if (error instanceof AgentError) return `its agent did not take part (${error.code})`;
  return claimReason(error);
}
