import type { Machine } from "./machine.ts";

const OUTPUT_BYTES = 4096;

/** Runs a short command of ours; `exitCode` is null when a signal or the deadline ended it. */
export async function runInGuest(
  machine: Machine,
  command: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ exitCode: number | null; stdout: string }> {
  const run = {
    command: new TextEncoder().encode(command),
    stdin: null,
    cwd: "/",
    timeoutMs,
    maxOutputBytes: OUTPUT_BYTES,
  };
  const { exit, stdout } = await machine.startRun(run, signal).ended;
  const text = Buffer.concat([stdout.head, stdout.tail]).toString("utf8");
  return { exitCode: exit.timed_out ? null : exit.exit_code, stdout: text };
}
