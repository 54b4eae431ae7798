import { jsonError } from "../engine-error.ts";
import type { Machine } from "./machine.ts";
import { runInGuest } from "./run-in-guest.ts";

/** Where tasks run and files are copied to */
export const WORKSPACE = "/workspace";
const DEADLINE_MS = 30_000;

/** What every VM has before anybody is told of it. */
export async function prepareGuest(machine: Machine, signal: AbortSignal): Promise<void> {
  const { exitCode } = await runInGuest(machine, `mkdir -p ${WORKSPACE}`, DEADLINE_MS, signal);
  if (exitCode !== 0) throw jsonError(500, "prepare_failed", `${WORKSPACE} could not be made in the guest`);
}
