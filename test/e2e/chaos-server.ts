import { stillAlive, vmsOf } from "../support/leftovers.ts";
import type { ProcessInfo } from "../support/processes.ts";
import { RawClient, ServerGone } from "../support/raw-client.ts";
import { EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import type { Rng } from "../support/rng.ts";
import { eventually } from "../support/test-server.ts";

/** What became of a call. `gone`: the server was killed before it answered. */
export type Answer =
  | { kind: "ok"; fields: Record<string, unknown> }
  | { kind: "error"; code: string; message: string }
  | { kind: "gone" };

const CALL_MS = 60_000;
const KERNEL_MS = 30_000;

/** A server that is killed and replaced now and then, and the count of what was done to its VMMs. */
export class ChaosServer implements AsyncDisposable {
  readonly home = new TestHome();
  /** Changes when the server is replaced: its sessions are unknown to the next one */
  generation = 0;
  vmmKills = 0;
  /** What was written to stderr by all servers so far */
  stderr = "";
  #client: RawClient;
  #replacement: Promise<void> = Promise.resolve();

  private constructor() {
    this.#client = this.#spawn();
  }

  static async start(): Promise<ChaosServer> {
    const server = new ChaosServer();
    await server.#client.initialize();
    return server;
  }

  get pid(): number {
    return this.#client.pid;
  }

  vmms(): ProcessInfo[] {
    return vmsOf(this.pid).filter((info) => info.name.startsWith("qemu-system"));
  }

  async call(name: string, args: Record<string, unknown> = {}): Promise<Answer> {
    await this.#replacement;
    return await this.begin(name, args).answer;
  }

  /** A call that can be taken back. */
  begin(name: string, args: Record<string, unknown>): { answer: Promise<Answer>; cancel(): void } {
    const client = this.#client;
    const { id, reply } = client.start("tools/call", { name, arguments: args }, CALL_MS);
    const cancel = () => client.notify("notifications/cancelled", { requestId: id });
    return { answer: this.#judge(reply, this.generation), cancel };
  }

  async #judge(reply: Promise<Record<string, unknown>>, generation: number): Promise<Answer> {
    let message: Record<string, unknown>;
    try {
      message = await reply;
    } catch (error) {
      if (!(error instanceof ServerGone) || generation === this.generation) throw error;
      await this.#replacement;
      return { kind: "gone" };
    }
    const result = message["result"] as { isError?: boolean; structuredContent: Record<string, unknown> };
    if (result === undefined) throw new Error(`no result: ${JSON.stringify(message)}`);
    if (!result.isError) return { kind: "ok", fields: result.structuredContent };
    const error = result.structuredContent["error"] as { code: string; message: string };
    return { kind: "error", ...error };
  }

  /** Kills one of the VMMs there are now, whoever has it. */
  killVmm(rng: Rng): void {
    const vmms = this.vmms();
    if (vmms.length === 0) return;
    this.vmmKills += signal(rng.pick(vmms), "SIGKILL") ? 1 : 0;
  }

  /** Lets one VMM stand still for a moment. */
  async pauseVmm(rng: Rng, durationMs: number): Promise<void> {
    const vmms = this.vmms();
    if (vmms.length === 0) return;
    const vmm = rng.pick(vmms);
    signal(vmm, "SIGSTOP");
    await Bun.sleep(durationMs);
    signal(vmm, "SIGCONT");
  }

  /** Kills the server and starts another; all its VMs must be gone by then. */
  async replace(): Promise<void> {
    this.#replacement = this.#replace();
    await this.#replacement;
  }

  async #replace(): Promise<void> {
    const killed = this.#client;
    const vms = vmsOf(killed.pid);
    this.generation++;
    killed.kill("SIGKILL");
    await killed.exited();
    this.#collect(killed);
    await eventually("the kernel ended the VMs", KERNEL_MS, () => stillAlive(vms).length === 0);
    this.#client = this.#spawn();
    await this.#client.initialize();
  }

  /** The last server ends as it should. */
  async end(): Promise<number> {
    this.#client.endInput();
    const status = await this.#client.exited();
    this.#collect(this.#client);
    return status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
    this.home[Symbol.dispose]();
  }

  #spawn(): RawClient {
    const env = this.home.env({ IGN_MCP_LOG: "info", IGN_MCP_POOL: "1", IGN_MCP_MAX_SESSIONS: "4" });
    return new RawClient({ command: EXECUTABLE_PATH, env });
  }

  #collect(client: RawClient): void {
    this.stderr += client.stderr;
    const unexpected = [...client.strayLines, ...client.notifications];
    if (unexpected.length > 0) throw new Error(`not asked for: ${JSON.stringify(unexpected)}`);
  }
}

/** False when the process has ended. */
function signal(target: ProcessInfo, name: NodeJS.Signals): boolean {
  if (stillAlive([target]).length === 0) return false;
  try {
    process.kill(target.pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}
