import { within } from "../../base/wait.ts";
import { VmError } from "../vm-error.ts";
import type { Qmp } from "./qmp.ts";

/** RAM stays in its file: only device state travels. */
const CAPABILITIES = [
  { capability: "x-ignore-shared", state: true },
  { capability: "events", state: true },
];

/** Writes the stopped machine's device state to a file. */
export async function saveState(
  qmp: Qmp,
  statePath: string,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<void> {
  await migrate(qmp, "migrate", statePath, deadlineMs, signal);
}

/**
 * Writes the device state of a machine whose RAM is mapped privately, without the RAM. The machine must be stopped.
 * Despite its name the command has nothing to do with Xen.
 */
export async function saveRunningState(qmp: Qmp, statePath: string): Promise<void> {
  await qmp.execute("xen-save-devices-state", { filename: statePath });
}

/** Loads device state into a machine started with `-incoming defer`; it is paused afterwards, as its base was. */
export async function loadState(
  qmp: Qmp,
  statePath: string,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<void> {
  await migrate(qmp, "migrate-incoming", statePath, deadlineMs, signal);
}

async function migrate(
  qmp: Qmp,
  command: string,
  statePath: string,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<void> {
  await qmp.execute("migrate-set-capabilities", { capabilities: CAPABILITIES });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  promise.catch(() => undefined);
  const unsubscribe = qmp.onEvent(({ event, data }) => {
    if (event !== "MIGRATION") return;
    if (data["status"] === "completed") resolve();
    if (data["status"] === "failed")
      reject(new VmError("vmm_failed", `QEMU could not ${command} ${statePath}`));
  });
  try {
    await qmp.execute(command, { uri: `file:${statePath}` });
    await within(Promise.race([promise, qmp.failure]), deadlineMs, `QEMU's ${command}`, signal);
  } finally {
    unsubscribe();
  }
}
