import { join } from "node:path";
import type { Logger } from "../../src/base/logger.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { removeBase } from "../../src/vm/base-store.ts";
import { CloneSource } from "../../src/vm/clone-source.ts";
import type { Vm } from "../../src/vm/vm.ts";
import { TestHome } from "./real-vm.ts";
import { TestStore } from "./test-store.ts";

const NEVER = new AbortController().signal;
const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} };
const RUN_MS = 60_000;

/** Clones of the shared base in this process, for what no tool of a server shows. They end with it. */
export class DirectVms implements AsyncDisposable {
  readonly #home = new TestHome();
  readonly #store = new TestStore(join(this.#home.path, "store"));
  readonly #source: CloneSource;
  readonly #vms: Vm[] = [];

  constructor() {
    this.#store.copySharedBase();
    const { HOME, IGN_MCP_ACCEL } = this.#home.env();
    const env = { HOME, IGN_MCP_ACCEL, IGN_MCP_STORE: this.#store.path, IGN_MCP_POOL: "0" };
    this.#source = new CloneSource(loadConfig(env), QUIET);
  }

  async claim(): Promise<Vm> {
    return this.#own(await this.#source.claim({ signal: NEVER }));
  }

  /** A VM that goes on from where this one stands. */
  async fork(vm: Vm): Promise<Vm> {
    const { checkpointId } = await vm.checkpoint(NEVER);
    try {
      return this.#own(await this.#source.fork(checkpointId, { signal: NEVER }));
    } finally {
      await removeBase({ storePath: this.#store.path }, checkpointId);
    }
  }

  #own(vm: Vm): Vm {
    this.#vms.push(vm);
    return vm;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const vm of this.#vms) await vm[Symbol.asyncDispose]();
    await this.#source[Symbol.asyncDispose]();
    this.#home[Symbol.dispose]();
  }
}

export interface DirectRun {
  stdout: string;
  stderr: string;
  code: number | null;
}

/** One command to its end. */
export async function runIn(vm: Vm, command: string, signal = NEVER): Promise<DirectRun> {
  const bytes = new TextEncoder().encode(command);
  const run = { command: bytes, stdin: null, cwd: null, timeoutMs: RUN_MS, maxOutputBytes: 65_536 };
  const { stdout, stderr, exit } = await vm.startRun(run, signal).ended;
  const text = ({ head, tail }: { head: Uint8Array; tail: Uint8Array }) =>
    Buffer.concat([head, tail]).toString();
  return { stdout: text(stdout), stderr: text(stderr), code: exit.exit_code };
}

/** Stdout of a command that must exit with 0. */
export async function outputIn(vm: Vm, command: string): Promise<string> {
  const { stdout, stderr, code } = await runIn(vm, command);
  if (code !== 0) throw new Error(`${command.slice(0, 200)} exited with ${code}: ${stderr}`);
  return stdout;
}
