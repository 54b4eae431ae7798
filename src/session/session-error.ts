import { Fault } from "../base/fault.ts";
import type { SessionState } from "./session-state.ts";

export type SessionErrorCode =
  /** The id was never given out by this server */
  | "unknown_session"
  /** The id was given out, but its session has ended; the message says why */
  | "dead_session"
  /** All session slots are taken */
  | "session_cap"
  /** The session is being reset or closed by another call */
  | "session_busy"
  /** No clone could be made: base, VMM or agent failed */
  | "open_failed"
  | "reset_failed"
  /** The working directory does not exist in the guest, or is no directory */
  | "bad_cwd"
  /** The path is a directory, or not a path at all */
  | "bad_path"
  /** The guest's file system is full */
  | "no_space"
  /** The run's id was never given out in this session */
  | "unknown_run"
  /** The run's id was given out, and what it led to is gone; the message says why */
  | "dead_run"
  /** The cursor is not one that a poll returned */
  | "bad_cursor"
  /** The run's stdin is /dev/null, or was closed */
  | "stdin_closed"
  /** The run does not read the input it was given before */
  | "stdin_full"
  /** The file has no such lines or bytes */
  | "bad_range"
  /** The file could not be read in the guest */
  | "read_failed"
  /** The session takes no more runs at once */
  | "too_many_runs"
  /** The command could not be started in the guest */
  | "run_failed"
  | "write_failed"
  /** The VM or its agent ended under the call; the message says why */
  | "session_died"
  /** No checkpoint has this id */
  | "unknown_checkpoint"
  /** The store takes no more checkpoints */
  | "checkpoint_cap"
  | "checkpoint_failed"
  /** No clone of the checkpoint could be made */
  | "fork_failed"
  | "cancelled"
  | "shutting_down";

/** An error an agent is meant to read: what failed, why, and what to do next. */
export class SessionError extends Fault<SessionErrorCode> {}

export function unknownSession(sessionId: string): SessionError {
  return new SessionError(
    "unknown_session",
    `there is no session '${sessionId}'. Open one with open_session and use the id it returns.`,
  );
}

export function busy(sessionId: string, state: SessionState): SessionError {
  return new SessionError(
    "session_busy",
    `session ${sessionId} is ${state}. Wait for that call to end, then try again.`,
  );
}

export function shuttingDown(): SessionError {
  return new SessionError("shutting_down", "the server is shutting down. Start it again to go on.");
}

export function cancelled(error?: unknown): SessionError {
  return new SessionError("cancelled", "the call was cancelled. Call again to go on.", error);
}
