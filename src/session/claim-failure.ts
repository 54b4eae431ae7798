import { VmError, type VmErrorCode } from "../vm/vm-error.ts";
import { SessionError } from "./session-error.ts";

/** Of the machine itself; the others say what is wrong here and which command mends it. */
const WITHOUT_STEP: readonly VmErrorCode[] = ["vmm_failed", "clone_failed"];

/** Why no machine could be had. */
export function claimReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function openFailure(error: unknown): SessionError {
  if (error instanceof SessionError) return error;
  const what = `no session could be opened: ${claimReason(error)}`;
  return new SessionError("open_failed", withStep(what, error, "Try again"), error);
}

export function resetFailure(sessionId: string, error: unknown): SessionError {
  if (error instanceof SessionError) return error;
  const what = `session ${sessionId} could not be reset and is closed: ${claimReason(error)}`;
  return new SessionError("reset_failed", withStep(what, error, "Open a new one with open_session"), error);
}

/** A machine that did not come up, perhaps in time, says nothing about what to do. */
export function withStep(what: string, error: unknown, step: string): string {
  if (error instanceof VmError && !WITHOUT_STEP.includes(error.code)) return what;
  return `${what}. ${step}; if that fails too, ignition-mcp doctor says what this machine lacks.`;
}
