import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../vms/machine.ts";
import { runInGuest } from "../vms/run-in-guest.ts";

/** In a VM's directory while it has a task */
const MARK = "task-in-flight";
/** In the guest: the cgroup of its latest task */
const GUEST_MARK = "/run/ignition-task-cgroup";
const DEADLINE_MS = 30_000;

/** Shell text in front of a task's own, after which the guest knows which cgroup is the task's. */
export const TELL_CGROUP = `{ cut -d: -f3 /proc/self/cgroup >${GUEST_MARK}; } 2>/dev/null\n`;

/** Notes that a VM has a task, until what it returns is disposed of. */
export function markTask(vmDir: string): Disposable {
  const path = join(vmDir, MARK);
  writeFileSync(path, "", { mode: 0o600 });
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/**
 * Ends the task an earlier engine did not live to see the end of. The guest's agent has done so when it lost that engine,
 * unless the machine was being copied just then: such runs go on, and nobody would ever read what they print.
 */
export async function endInterruptedTask(
  machine: Machine,
  vmDir: string,
  signal: AbortSignal,
): Promise<void> {
  const path = join(vmDir, MARK);
  if (!existsSync(path)) return;
  const kill = `read -r cgroup <${GUEST_MARK} && echo 1 >"/sys/fs/cgroup$cgroup/cgroup.kill"`;
  await runInGuest(machine, `{ ${kill}; } 2>/dev/null`, DEADLINE_MS, signal);
  rmSync(path);
}
