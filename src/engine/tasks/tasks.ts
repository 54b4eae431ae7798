import { AgentError } from "../../guest/agent-error.ts";
import { capturedText } from "../../guest/captured-text.ts";
import { type CapturedStream, type CommandEnd, isCut } from "../../guest/output-capture.ts";
import type { RunHandle } from "../../guest/run-handle.ts";
import { EngineError, jsonError } from "../engine-error.ts";
import type { Profiles } from "../profiles/profiles.ts";
import type { Tenants } from "../tenants/tenants.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { WORKSPACE } from "../vms/prepare-guest.ts";
import { agentFailure } from "./agent-failure.ts";
import { markTask, TELL_CGROUP } from "./interrupted-task.ts";
import { taskCommand } from "./task-command.ts";

/** The longest a task may take, in `ms` */
export const TASK_LIMIT_MS = 24 * 3_600_000;
/** What of each stream is answered; of more, both ends */
const MAX_OUTPUT_BYTES = 1_048_576;
const ERROR_TAIL_CHARACTERS = 2000;
const REPORT_MS = 1000;

export interface TaskRequest {
  prompt: string;
  /** Name of what the program is to go on from, if it can */
  session?: string | undefined;
  /** How many tasks led to this one, from X-Ephemera-Task-Depth */
  depth?: number;
  /** Cancels it */
  signal: AbortSignal;
  /** Called with the run as soon as it is under way */
  onStart?: (run: RunHandle) => void;
}

/** `error` is there when the task failed; `output` is what it printed until then. */
export interface TaskResult {
  output: string;
  /** There when `output` is not all it printed */
  output_truncated?: true;
  /** All of it, where `output` is not */
  output_bytes?: number;
  /** File in the guest that begins with the first byte of it, where `output` is not all */
  output_path?: string;
  error?: string;
}

/** Gives prompts to the programs in VMs, one at a time for each VM. */
export class Tasks {
  readonly #profiles: Profiles;
  readonly #tenants: Tenants;
  readonly #maxDepth: number;
  /** VMs with a task, and whose they are */
  readonly #busy = new Map<string, string | undefined>();
  readonly #listeners: ((vm: EngineVm, isFailed: boolean, durationMs: number) => void)[] = [];

  constructor(parts: { profiles: Profiles; tenants: Tenants; maxDepth: number }) {
    this.#profiles = parts.profiles;
    this.#tenants = parts.tenants;
    this.#maxDepth = parts.maxDepth;
    this.#tenants.measure(
      "concurrent_tasks",
      (tenantId) => [...this.#busy.values()].filter((id) => id === tenantId).length,
    );
  }

  isBusy(vmId: string): boolean {
    return this.#busy.has(vmId);
  }

  /** Calls back at the end of each task that was begun. */
  onEnd(listener: (vm: EngineVm, isFailed: boolean, durationMs: number) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Runs one and resolves with what it printed, whether it failed or not. Rejects with 503 while another one runs in the
   * VM, 409 for a paused one, 403 beyond the tenant's quota, 508 when it is too deep, 502 when the guest is gone, and 400
   * for a prompt that its program cannot be given.
   */
  async run(vm: EngineVm, request: TaskRequest): Promise<TaskResult> {
    const depth = request.depth ?? 0;
    if (depth >= this.#maxDepth)
      throw jsonError(508, "task_too_deep", `task depth limit reached (${this.#maxDepth})`);
    const profile = await this.#profiles.get(vm.record.profile ?? "");
    const { prompt, session } = request;
    const { command, stdin } = taskCommand(profile, { prompt, session, depth: depth + 1 });
    request.signal.throwIfAborted();
    const machine = vm.awake;
    this.#begin(vm);
    const startedAt = performance.now();
    let isFailed = true;
    try {
      using _mark = markTask(vm.dir);
      const run = machine.startRun(
        {
          command: new TextEncoder().encode(TELL_CGROUP + command),
          stdin,
          cwd: WORKSPACE,
          timeoutMs: TASK_LIMIT_MS,
          maxOutputBytes: MAX_OUTPUT_BYTES,
          ...(request.onStart && { reportMs: REPORT_MS }),
        },
        request.signal,
      );
      request.onStart?.(run);
      const result = taskResult(await run.ended);
      isFailed = result.error !== undefined;
      return result;
    } catch (error) {
      if (error instanceof AgentError && error.code === "agent_refused")
        return { output: "", error: `the guest could not start it: ${error.refusal}` };
      throw agentFailure(error, request.signal);
    } finally {
      this.#busy.delete(vm.id);
      for (const listener of this.#listeners) listener(vm, isFailed, performance.now() - startedAt);
    }
  }

  /** Nothing is awaited here, so two at once cannot both begin. */
  #begin(vm: EngineVm): void {
    if (this.#busy.has(vm.id)) throw new EngineError(503, "agent_busy", "agent busy");
    this.#tenants.admit(vm.record.tenant_id, "concurrent_tasks");
    this.#busy.set(vm.id, vm.record.tenant_id);
  }
}

function taskResult(end: CommandEnd): TaskResult {
  const printed = { output: capturedText(end.stdout).text, ...cutOf(end.stdout) };
  const failure = failureOf(end);
  if (failure === null) return printed;
  const said = capturedText(end.stderr).text.trim().slice(-ERROR_TAIL_CHARACTERS);
  return { ...printed, error: said === "" ? failure : `${failure}: ${said}` };
}

function cutOf(stdout: CapturedStream): Omit<TaskResult, "output"> {
  if (!isCut(stdout)) return {};
  const { totalBytes, path } = stdout;
  return { output_truncated: true, output_bytes: totalBytes, ...(path !== null && { output_path: path }) };
}

function failureOf({ exit }: CommandEnd): string | null {
  if (exit.timed_out) return `the task took longer than ${TASK_LIMIT_MS / 3_600_000} h`;
  if (exit.oom_killed && exit.exit_code !== 0) return "the task ran out of memory";
  if (exit.signal !== null) return `signal ${exit.signal}`;
  return exit.exit_code === 0 ? null : `exit status ${exit.exit_code}`;
}
