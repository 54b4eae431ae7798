import { AgentError } from "../../guest/agent-error.ts";
import { capturedText } from "../../guest/captured-text.ts";
import { type CapturedStream, isCut } from "../../guest/output-capture.ts";
import { badRequest, jsonError } from "../engine-error.ts";
import { agentFailure } from "../tasks/agent-failure.ts";
import { quoted } from "../tasks/task-command.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { WORKSPACE } from "../vms/prepare-guest.ts";
import { workspacePath } from "../workspace/workspace-path.ts";

export const DEFAULT_TIMEOUT_S = 600;
export const MAX_TIMEOUT_S = 1800;
/** Of each stream; of more, both ends */
const MAX_OUTPUT_BYTES = 1_048_576;
/** What our shell says, with status 127, of a script that is not there */
const MISSING_MARK = "ignition: no such workload";
const TIMED_OUT = -1;
const SCRIPT = /^workloads\/.+\.sh$/;

export interface WorkloadResult {
  script: string;
  /** -1 after a timeout, -N when signal N ended it */
  exit_code: number;
  stdout: string;
  stderr: string;
  duration_ms: number;
  timed_out: boolean;
  stdout_truncated?: boolean;
  stderr_truncated?: boolean;
}

/** Runs a script below workloads/ of the workspace, with next to no environment. */
export async function runWorkload(
  vm: EngineVm,
  script: string,
  timeoutS: number,
  signal: AbortSignal,
): Promise<WorkloadResult> {
  const path = workspacePath(script);
  if (!SCRIPT.test(path)) throw badRequest("script must be a .sh file below workloads/");
  const run = {
    command: new TextEncoder().encode(commandFor(path)),
    stdin: null,
    cwd: WORKSPACE,
    timeoutMs: timeoutS * 1000,
    maxOutputBytes: MAX_OUTPUT_BYTES,
  };
  try {
    const { exit, stdout, stderr } = await vm.awake.startRun(run, signal).ended;
    const said = textOf(stderr);
    if (exit.exit_code === 127 && said.trim() === MISSING_MARK)
      throw jsonError(404, "workload_not_found", "workload script not found");
    return {
      script: path,
      exit_code: exit.timed_out ? TIMED_OUT : (exit.exit_code ?? -(exit.signal ?? 0)),
      stdout: textOf(stdout),
      stderr: said,
      duration_ms: Math.round(exit.duration_us / 1000),
      timed_out: exit.timed_out,
      ...(isCut(stdout) && { stdout_truncated: true }),
      ...(isCut(stderr) && { stderr_truncated: true }),
    };
  } catch (error) {
    if (error instanceof AgentError && error.code === "agent_refused")
      throw jsonError(500, "agent_refused", `the guest could not start it: ${error.refusal}`, {}, error);
    throw agentFailure(error, signal);
  }
}

function commandFor(path: string): string {
  const script = quoted(path);
  return (
    `[ -f ${script} ] || { echo '${MISSING_MARK}' >&2; exit 127; }\n` +
    `exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh ${script}`
  );
}

function textOf(stream: CapturedStream): string {
  return capturedText(stream).text;
}
