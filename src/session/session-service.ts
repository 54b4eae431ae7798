/** What the MCP layer asks of sessions. Implemented by `SessionTable`; every method rejects with `SessionError`. */
export interface SessionService extends AsyncDisposable {
  /** Clones the warm base and answers a probe in it before it resolves. A failed open leaves nothing behind. */
  open(call: CallContext): Promise<OpenedSession>;
  /** Runs `sh -c command`. A non-zero exit and a timeout resolve; only our own failures reject. */
  run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult>;
  /** Writes the whole file or nothing. */
  writeFile(sessionId: string, path: string, content: Uint8Array, call: CallContext): Promise<void>;
  /** Replaces the clone under the same id. */
  reset(sessionId: string, call: CallContext): Promise<void>;
  close(sessionId: string): Promise<void>;
}

/** The caller's side of one call: cancellation and progress. */
export interface CallContext {
  signal: AbortSignal;
  /** Short state for a person, such as "building base: booting"; undefined when nobody listens */
  progress?: (message: string) => void;
}

export interface OpenedSession {
  sessionId: string;
}

export interface RunRequest {
  /** Shell text, 1 byte to 1 MiB in UTF-8, without NUL */
  command: string;
  /** 1 to 3 600 000 `ms` */
  timeoutMs: number;
  /** Working directory in the guest; null for /root */
  cwd: string | null;
  /** Bytes for stdin, then EOF; null for /dev/null */
  stdin: Uint8Array | null;
}

export interface RunResult {
  stdout: string;
  stderr: string;
  /** The shell's status; 124 after a timeout, -N when signal N ended it */
  exitCode: number;
  timedOut: boolean;
  /** Name of the signal that ended the shell, such as "SIGKILL" */
  signal: string | null;
  /** All bytes the stream had, whether shown or not */
  stdoutBytes: number;
  stderrBytes: number;
  /** The middle of the stream is not in the text */
  isStdoutCut: boolean;
  isStderrCut: boolean;
  /** File in the guest with the stream when it was cut or may still grow; null when there is none */
  stdoutPath: string | null;
  stderrPath: string | null;
  /** Time from start to end inside the guest, in `ms` */
  durationMs: number;
}
