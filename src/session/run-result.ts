import { capturedText, isCut } from "../guest/captured-text.ts";
import type { CommandEnd } from "../guest/run-command.ts";
import type { RunResult } from "./session-service.ts";

/** What coreutils' timeout reports, and the seed's guest agent */
const TIMEOUT_EXIT_CODE = 124;

/** Linux' signals from 1 on; the guest's, whatever the host's system numbers */
const SIGNAL_NAMES =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );

/** A run's end as the caller sees it. */
export function runResult({ exit, stdout, stderr }: CommandEnd): RunResult {
  return {
    stdout: capturedText(stdout),
    stderr: capturedText(stderr),
    exitCode: exitCode(exit),
    timedOut: exit.timed_out,
    signal: exit.signal === null ? null : `SIG${SIGNAL_NAMES[exit.signal - 1] ?? exit.signal}`,
    stdoutBytes: stdout.totalBytes,
    stderrBytes: stderr.totalBytes,
    isStdoutCut: isCut(stdout),
    isStderrCut: isCut(stderr),
    stdoutPath: stdout.path,
    stderrPath: stderr.path,
    durationMs: exit.duration_us / 1000,
  };
}

function exitCode(exit: CommandEnd["exit"]): number {
  if (exit.timed_out) return TIMEOUT_EXIT_CODE;
  if (exit.signal !== null) return -exit.signal;
  if (exit.exit_code === null) throw new RangeError("the agent reported an end without a status");
  return exit.exit_code;
}
