import { Fault } from "../base/fault.ts";
import type { Logger } from "../base/logger.ts";
import type { SessionErrorCode } from "../session/session-error.ts";
import type { Failure } from "./tool-result.ts";

const RETRYABLE: ReadonlySet<string> = new Set<SessionErrorCode>([
  "session_cap",
  "session_busy",
  "open_failed",
  "stdin_full",
  "too_many_runs",
  "fork_failed",
  "checkpoint_failed",
  "cancelled",
]);

/** A fault's sentence is meant for the caller; anything else is a bug, and its details stay in the log. */
export function describeFailure(error: unknown, log: Logger): Failure {
  if (error instanceof Fault) {
    return { code: error.code, message: error.message, retryable: RETRYABLE.has(error.code) };
  }
  log.error({ err: error }, "a tool call failed in a way that is a bug");
  return {
    code: "internal_error",
    message: "The server hit a bug of its own. Try another session; the server's stderr has the details.",
    retryable: false,
  };
}
