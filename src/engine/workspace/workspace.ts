import { posix } from "node:path";
import { AgentError } from "../../guest/agent-error.ts";
import { badRequest, jsonError } from "../engine-error.ts";
import { agentFailure } from "../tasks/agent-failure.ts";
import { quoted } from "../tasks/task-command.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import type { Machine } from "../vms/machine.ts";
import { WORKSPACE } from "../vms/prepare-guest.ts";
import { runInGuest } from "../vms/run-in-guest.ts";

/** Of one file, in either direction */
export const FILE_LIMIT_BYTES = 4 * 1_048_576;
const LINK_DEADLINE_MS = 30_000;
/** What our link command ends with when the name is taken */
const TAKEN = 17;

export const fileTooLarge = jsonError(413, "too_large", "workspace file exceeds size limit");

/** Writes a file of a VM's workspace whole. Rejects with 409 when it is there and may not be replaced. */
export async function writeWorkspaceFile(
  vm: EngineVm,
  path: string,
  content: Uint8Array,
  { overwrite, signal }: { overwrite: boolean; signal: AbortSignal },
): Promise<void> {
  const target = posix.join(WORKSPACE, path);
  try {
    if (overwrite) await vm.awake.putFile(target, content, signal);
    else await putNew(vm, target, content, signal);
  } catch (error) {
    throw refusalOf(error) ?? agentFailure(error, signal);
  }
}

export async function readWorkspaceFile(
  vm: EngineVm,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const range = { offset: 0, bytes: FILE_LIMIT_BYTES + 1, limitBytes: FILE_LIMIT_BYTES + 1 };
  try {
    const { content, fileBytes } = await vm.awake.getFile(posix.join(WORKSPACE, path), range, signal);
    if (Math.max(fileBytes, content.byteLength) > FILE_LIMIT_BYTES) throw fileTooLarge;
    return content;
  } catch (error) {
    throw refusalOf(error) ?? agentFailure(error, signal);
  }
}

/** The agent always replaces; a link is made only where no name is. */
async function putNew(vm: EngineVm, target: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
  const beside = posix.join(posix.dirname(target), `.copy-in-${crypto.randomUUID()}`);
  const [from, to] = [quoted(beside), quoted(target)];
  const machine = vm.awake;
  const link =
    `ln -T ${from} ${to} 2>/dev/null; made=$?; rm -f ${from}; [ "$made" = 0 ] && exit 0; ` +
    `if [ -e ${to} ] || [ -L ${to} ]; then exit ${TAKEN}; fi; exit 1`;
  let exitCode: number | null = null;
  try {
    await machine.putFile(beside, content, signal);
    ({ exitCode } = await runInGuest(machine, link, LINK_DEADLINE_MS, signal));
  } finally {
    if (exitCode === null) await removeFile(machine, beside);
  }
  if (exitCode === TAKEN) throw jsonError(409, "file_exists", "workspace file already exists");
  if (exitCode !== 0) throw jsonError(500, "write_failed", "workspace file could not be written");
}

/** Also when the client is gone. Why it cannot be done either is what has been told already. */
async function removeFile(machine: Machine, path: string): Promise<void> {
  const { signal } = new AbortController();
  await Promise.allSettled([runInGuest(machine, `rm -f ${quoted(path)}`, LINK_DEADLINE_MS, signal)]);
}

/** Null for what is no refusal of the agent. */
function refusalOf(error: unknown): Error | null {
  if (!(error instanceof AgentError) || error.code !== "agent_refused") return null;
  switch (error.refusal) {
    case "not_found":
      return jsonError(404, "file_not_found", "workspace file not found", {}, error);
    case "no_space":
      return jsonError(507, "workspace_full", "workspace is full", {}, error);
    case "is_directory":
    case "bad_path":
      return badRequest("workspace path is not a file");
    default:
      return jsonError(500, "agent_refused", `the guest refused: ${error.refusal}`, {}, error);
  }
}
