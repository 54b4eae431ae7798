import type { FileExcerpt, FileRange } from "./read-file.ts";
import type { PolledRun, PollRequest, RunRequest, RunResult } from "./run-contract.ts";
import type { TakenCheckpoint } from "./vm-source.ts";

/** What the MCP layer asks of sessions. Implemented by `SessionTable`; every method rejects with `SessionError`. */
export interface SessionService extends AsyncDisposable {
  /** Clones the warm base and answers a probe in it before it resolves. A failed open leaves nothing behind. */
  open(call: CallContext): Promise<OpenedSession>;
  /**
   * Runs `sh -c command`. A non-zero exit and a timeout resolve; only our own failures reject.
   * Resolves with a `PolledRun` when the run goes on: in the background, or because its caller might give up.
   */
  run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult | PolledRun>;
  /** Waits on for a run that went on when its call was answered; cancellation ends the run. */
  awaitRun(sessionId: string, runId: string, call: CallContext): Promise<RunResult | PolledRun>;
  /** Gives input or a signal to a run that goes on, and what it printed since the cursor. */
  poll(sessionId: string, runId: string, request: PollRequest, call: CallContext): Promise<PolledRun>;
  /** Writes the whole file or nothing. */
  writeFile(sessionId: string, path: string, content: Uint8Array, call: CallContext): Promise<void>;
  readFile(sessionId: string, path: string, range: FileRange, call: CallContext): Promise<FileExcerpt>;
  /** Replaces the clone under the same id. */
  reset(sessionId: string, call: CallContext): Promise<void>;
  /** Keeps the session's memory, processes and files as a base; the session goes on. */
  checkpoint(sessionId: string, call: CallContext): Promise<TakenCheckpoint>;
  /** Opens a session that goes on from a checkpoint. */
  fork(checkpointId: string, call: CallContext): Promise<OpenedSession>;
  close(sessionId: string): Promise<void>;
  /** Every session whose id was given out and that has not ended, oldest first */
  list(): SessionSummary[];
}

/** The caller's side of one call: cancellation and progress. */
export interface CallContext {
  signal: AbortSignal;
  /** Short state for a person, such as "building base: booting"; undefined when nobody listens */
  progress?: (message: string) => void;
  /** The last line a run printed, which is the guest's text and not ours; there with `progress` */
  quote?: (line: string) => void;
}

export interface OpenedSession {
  sessionId: string;
}

export interface SessionSummary {
  sessionId: string;
  /** "ready", "resetting" */
  state: string;
  ageMs: number;
  /** 0 while a call or a run is in flight */
  idleMs: number;
  /** Runs in flight */
  runs: number;
  /** Time until it is closed if nobody uses it; null while it is in use */
  closesInMs: number | null;
}
