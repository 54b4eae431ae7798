/** What is asked of runs and what is told of them, between the MCP layer and the sessions. */

/** Per stream and run unless the request says otherwise; head and tail take half each */
export const DEFAULT_OUTPUT_BYTES = 32_768;

export interface RunRequest {
  /** Shell text, 1 byte to 1 MiB in UTF-8, without NUL */
  command: string;
  /** 1 to 3 600 000 `ms` */
  timeoutMs: number;
  /** Working directory in the guest; null for /root */
  cwd: string | null;
  /** Bytes for stdin, then EOF; null for /dev/null. In the background stdin stays open */
  stdin: Uint8Array | null;
  /** What is shown of each stream, 0 to 1 MiB */
  maxOutputBytes: number;
  /** Answer as soon as it runs */
  isBackground: boolean;
}

/** How a run ended. */
export interface RunEnd {
  /** The shell's status; 124 after a timeout, -N when signal N ended it */
  exitCode: number;
  timedOut: boolean;
  /** Name of the signal that ended the shell, such as "SIGKILL" */
  signal: string | null;
  /** Time from start to end inside the guest, in `ms` */
  durationMs: number;
  /** The guest ran out of memory and killed a process of the run */
  oomKilled: boolean;
  /** The session's file system was full at the end */
  diskFull: boolean;
  /** A process could not be started because the run had too many */
  tooManyProcesses: boolean;
}

/** Output of both streams, or a part of it. */
export interface RunOutput {
  stdout: string;
  stderr: string;
  /** Bytes that are not UTF-8 became U+FFFD in the text */
  hasStdoutReplacements: boolean;
  hasStderrReplacements: boolean;
  /** All bytes the stream had until now, whether shown or not */
  stdoutBytes: number;
  stderrBytes: number;
  /** File in the guest with the stream; null when there is none */
  stdoutPath: string | null;
  stderrPath: string | null;
}

/** A run that has ended, with both ends of its output. */
export interface RunResult extends RunEnd, RunOutput {
  /** The middle of the stream is not in the text */
  isStdoutCut: boolean;
  isStderrCut: boolean;
}

export interface PollRequest {
  /** From the answer before; null for the start of the output */
  cursor: string | null;
  /** How long to wait for output or the end, 0 to 50 000 `ms` */
  waitMs: number;
  stdin: Uint8Array | null;
  /** Close stdin, after what is in `stdin` */
  endsInput: boolean;
  /** Number of the signal for all processes of the run */
  signal: number | null;
}

/** A run that went on when its call was answered, and the output since the cursor. */
export interface PolledRun extends RunOutput {
  runId: string;
  /** Null while it runs */
  end: RunEnd | null;
  /** Where the next poll goes on */
  cursor: string;
  /** There is more to read at once */
  hasMore: boolean;
}
