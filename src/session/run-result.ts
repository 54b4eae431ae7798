import { constants } from "node:os";
import { capturedText } from "../guest/captured-text.ts";
import type { CommandEnd } from "../guest/run-command.ts";
import type { RunResult } from "./session-service.ts";

/** What coreutils' timeout reports, and the seed's guest agent */
const TIMEOUT_EXIT_CODE = 124;

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A run's end as the caller sees it. */
export function runResult({ exit, stdout, stderr }: CommandEnd): RunResult {
  return {
    stdout: capturedText(stdout),
    stderr: capturedText(stderr),
    exitCode: exitCode(exit),
    timedOut: exit.timed_out,
    signal: exit.signal === null ? null : (SIGNAL_NAMES.get(exit.signal) ?? `SIG${exit.signal}`),
    stdoutBytes: stdout.totalBytes,
    stderrBytes: stderr.totalBytes,
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
