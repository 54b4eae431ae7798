import { capturedText } from "../guest/captured-text.ts";
import { type CapturedStream, type CommandEnd, isCut } from "../guest/output-capture.ts";
import type { RunEnd, RunResult } from "./run-contract.ts";
import { signalName } from "./signal-names.ts";

/** What coreutils' timeout reports, and the seed's guest agent */
const TIMEOUT_EXIT_CODE = 124;

/** A run's end and its output as the caller sees them. */
export function runResult(end: CommandEnd): RunResult {
  const { stdout, stderr } = end;
  const [shownStdout, shownStderr] = [capturedText(stdout), capturedText(stderr)];
  return {
    ...runEnd(end),
    stdout: shownStdout.text,
    stderr: shownStderr.text,
    hasStdoutReplacements: shownStdout.hasReplacements,
    hasStderrReplacements: shownStderr.hasReplacements,
    stdoutBytes: stdout.totalBytes,
    stderrBytes: stderr.totalBytes,
    isStdoutCut: isCut(stdout),
    isStderrCut: isCut(stderr),
    stdoutPath: pathToTell(stdout, end),
    stderrPath: pathToTell(stderr, end),
  };
}

export function runEnd({ exit }: CommandEnd): RunEnd {
  return {
    exitCode: exitCode(exit),
    timedOut: exit.timed_out,
    signal: exit.signal === null ? null : signalName(exit.signal),
    durationMs: exit.duration_us / 1000,
    oomKilled: exit.oom_killed,
    diskFull: exit.overlay_full,
    tooManyProcesses: exit.pids_exhausted,
  };
}

/** A file is worth naming when it has more than was shown, or will have. */
function pathToTell(stream: CapturedStream, { exit }: CommandEnd): string | null {
  return isCut(stream) || exit.background > 0 ? stream.path : null;
}

function exitCode(exit: CommandEnd["exit"]): number {
  if (exit.timed_out) return TIMEOUT_EXIT_CODE;
  if (exit.signal !== null) return -exit.signal;
  if (exit.exit_code === null) throw new RangeError("the agent reported an end without a status");
  return exit.exit_code;
}
