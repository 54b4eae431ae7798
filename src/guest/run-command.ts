import type { AgentClient } from "./agent-client.ts";
import type { CommandEnd } from "./output-capture.ts";
import { type RunCommand, startRun } from "./run-handle.ts";

/** Runs one command and resolves with its end, whatever that was; rejects as `RunHandle.ended` does. */
export async function runCommand(
  client: AgentClient,
  run: RunCommand,
  signal: AbortSignal,
  exitGraceMs?: number,
): Promise<CommandEnd> {
  return await startRun(client, run, signal, exitGraceMs).ended;
}
