import type { PolledRun, RunEnd, RunOutput, RunResult } from "../session/run-contract.ts";

const GOES_ON = "It still runs: pass run_id to poll, or to run where there is no poll.";
const OUT_OF_MEMORY =
  "The VM ran out of memory and killed a process of this run: use less, or raise IGN_MCP_MEM.";
const DISK_FULL = "The VM's disk is full: remove files, or reset the session.";
const TOO_MANY_PROCESSES = "A process could not start because this run had too many: start fewer at once.";

/** A run as callers see it. What is out of the ordinary appears only when it is so. */
export function runFields(run: RunResult | PolledRun): Record<string, unknown> {
  if (!("cursor" in run)) {
    return {
      ...textFields(run),
      ...endFields(run),
      ...sizeFields(run),
      ...cutFields(run),
      ...pathFields(run),
    };
  }
  const { end } = run;
  return {
    running: end === null,
    run_id: run.runId,
    ...textFields(run),
    ...(end ? endFields(end) : { note: GOES_ON }),
    cursor: run.cursor,
    ...(run.hasMore && { more: true }),
    ...sizeFields(run),
    ...((end === null || run.hasMore) && pathFields(run)),
  };
}

function textFields(output: RunOutput): Record<string, unknown> {
  return {
    stdout: output.stdout,
    stderr: output.stderr,
    ...(output.hasStdoutReplacements && { stdout_invalid_utf8: true }),
    ...(output.hasStderrReplacements && { stderr_invalid_utf8: true }),
  };
}

function endFields(end: RunEnd): Record<string, unknown> {
  const notes = [
    end.oomKilled && OUT_OF_MEMORY,
    end.diskFull && DISK_FULL,
    end.tooManyProcesses && TOO_MANY_PROCESSES,
  ].filter((note) => note !== false);
  return {
    exit_code: end.exitCode,
    timed_out: end.timedOut,
    duration_ms: end.durationMs,
    ...(end.signal !== null && { signal: end.signal }),
    ...(end.oomKilled && { oom_killed: true }),
    ...(end.diskFull && { disk_full: true }),
    ...(end.tooManyProcesses && { too_many_processes: true }),
    ...(notes.length > 0 && { note: notes.join(" ") }),
  };
}

function sizeFields(output: RunOutput): Record<string, unknown> {
  return { stdout_bytes: output.stdoutBytes, stderr_bytes: output.stderrBytes };
}

function cutFields(result: RunResult): Record<string, unknown> {
  return { stdout_truncated: result.isStdoutCut, stderr_truncated: result.isStderrCut };
}

function pathFields(output: RunOutput): Record<string, unknown> {
  return {
    ...(output.stdoutPath !== null && { stdout_path: output.stdoutPath }),
    ...(output.stderrPath !== null && { stderr_path: output.stderrPath }),
  };
}
