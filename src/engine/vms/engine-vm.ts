import { rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncDirectory } from "../../base/atomic-file.ts";
import type { Logger } from "../../base/logger.ts";
import { describeDeath } from "../../vm/vm-death.ts";
import { type EngineError, jsonError } from "../engine-error.ts";
import { writeJsonFile } from "../json-file.ts";
import type { Machine, MachinePlace, Machines } from "./machine.ts";
import type { VmRecord } from "./vm-record.ts";

export const STATE_FILE_NAME = "state.json";
/** Of a directory whose VM is gone */
export const REMOVING_PREFIX = ".removing-";

/** One VM of the engine: its record on disk and, while it runs, its machine. */
export class EngineVm {
  readonly dir: string;
  readonly #log: Logger;
  readonly #endings: ((vm: EngineVm) => void)[] = [];
  #record: VmRecord;
  #machine: Machine | null = null;
  #saving: Promise<void> = Promise.resolve();
  #isRemoved = false;

  constructor(record: VmRecord, dir: string, log: Logger) {
    this.#record = record;
    this.dir = dir;
    this.#log = log;
  }

  get id(): string {
    return this.#record.vm_id;
  }

  get record(): Readonly<VmRecord> {
    return this.#record;
  }

  get place(): MachinePlace {
    return { socketDir: this.#record.socket_dir, logPath: join(this.dir, "vmm.log") };
  }

  /** Throws 502 when it does not run. */
  get machine(): Machine {
    if (this.#machine) return this.#machine;
    throw agentUnreachable(this.#record.cause ?? `the VM is ${this.#record.state}`);
  }

  /** Its machine for calls to the guest. Throws 409 when it stands still, 502 when it does not run. */
  get awake(): Machine {
    const { machine } = this;
    if (this.#record.paused) throw vmPaused();
    return machine;
  }

  /** From the start of its removal on, unless that fails */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  get isRunning(): boolean {
    return this.#machine !== null;
  }

  /** Calls back once when it does not run any more, for whatever reason. */
  onEnd(listener: (vm: EngineVm) => void): void {
    this.#endings.push(listener);
  }

  /** Changes the record, in memory at once; it is on disk when this resolves. */
  async save(change: Partial<VmRecord> = {}): Promise<void> {
    this.#record = { ...this.#record, ...change };
    const saved = this.#saving.then(async () => {
      if (!this.#isRemoved) await writeJsonFile(join(this.dir, STATE_FILE_NAME), this.#record);
    });
    this.#saving = saved.catch(() => undefined);
    await saved;
  }

  /** Goes on with a new machine. */
  async attach(machine: Machine): Promise<void> {
    this.goOnWith(machine);
    await this.save({ state: "running", machine: machine.record });
  }

  /** Watches over the machine its record tells of. Nothing is written: a full disk must not part them. */
  goOnWith(machine: Machine): void {
    this.#machine = machine;
    machine.died
      .then((death) => this.#end("dead", describeDeath(death)))
      .catch((error) =>
        this.#log.error({ err: error, vm_id: this.id }, "what is left of a VM could not be ended"),
      );
  }

  /** Rejects with 502 and the cause when it does not stand still. */
  async pause(): Promise<void> {
    const { machine } = this;
    await machine.pause().catch((error) => {
      throw this.#standstillFailed("paused", error);
    });
    await this.save({ paused: true });
  }

  async resume(): Promise<void> {
    const { machine } = this;
    await machine.resume().catch((error) => {
      throw this.#standstillFailed("resumed", error);
    });
    await this.save({ paused: false });
  }

  /** Ends the machine; the record stays until `remove`. Rejects with 502 when it does not run. */
  async stop(): Promise<void> {
    if (!this.#machine) throw agentUnreachable(this.#record.cause ?? `the VM is ${this.#record.state}`);
    await this.#end("stopped", "the VM was stopped");
  }

  /** Declares it dead without a machine. */
  async declareDead(cause: string): Promise<void> {
    this.#tellEnd();
    await this.#saveEnd("dead", cause);
  }

  /** Ends the machine and removes everything of it. After a failure it can be tried again. */
  async remove(machines: Pick<Machines, "clear">): Promise<void> {
    const { machine, socket_dir } = this.#record;
    this.#isRemoved = true;
    try {
      if (this.isRunning) await this.#endMachine();
      // Whoever ended it before may not have seen it gone.
      else if (machine !== null) await machines.clear(machine.vmm, socket_dir);
      this.#tellEnd();
      await this.#saving;
      await this.#removeDirectory();
    } catch (error) {
      this.#isRemoved = false;
      const cause = `it could not be removed: ${(error as Error).message}`;
      this.#record = { ...this.#record, cause };
      throw jsonError(500, "vm_not_removed", `the VM is still there, ${cause}; delete it again`, {}, error);
    }
  }

  /** A directory that has only lost some of its files would be taken for a damaged one by the next engine. */
  async #removeDirectory(): Promise<void> {
    const parent = dirname(this.dir);
    const removing = join(parent, `${REMOVING_PREFIX}${this.id}`);
    try {
      await rename(this.dir, removing);
      await syncDirectory(parent);
    } catch (error) {
      // Never made, or renamed by an attempt that failed later.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    await rm(removing, { recursive: true, force: true });
  }

  /** Leaves the machine to the next engine. */
  async detach(): Promise<void> {
    this.#machine?.detach();
    this.#machine = null;
    await this.#saving;
  }

  async #end(state: "stopped" | "dead", cause: string): Promise<void> {
    if (!this.#machine) return;
    this.#log.info({ vm_id: this.id, cause }, `a VM is ${state}`);
    const ended = this.#endMachine();
    await this.#saveEnd(state, cause);
    await ended;
  }

  async #saveEnd(state: "stopped" | "dead", cause: string): Promise<void> {
    try {
      await this.save({ state, cause, paused: false });
    } catch (error) {
      // The next engine finds no process and comes to the same end.
      this.#log.error({ err: error, vm_id: this.id }, "the end of a VM could not be written");
    }
  }

  async #endMachine(): Promise<void> {
    const machine = this.#machine;
    if (!machine) return;
    this.#machine = null;
    this.#tellEnd();
    await machine[Symbol.asyncDispose]();
  }

  #standstillFailed(what: "paused" | "resumed", error: Error): EngineError {
    const { agent_id, vm_id } = this.#record;
    const who = agent_id === undefined ? `VM ${vm_id}` : `agent ${agent_id} (VM ${vm_id})`;
    return jsonError(502, "standstill_failed", `${who} could not be ${what}: ${error.message}`, {}, error);
  }

  #tellEnd(): void {
    for (const listener of this.#endings.splice(0)) listener(this);
  }
}

export function vmPaused(): EngineError {
  return jsonError(409, "vm_paused", "vm is paused");
}

export function agentUnreachable(cause: string, error?: unknown) {
  return jsonError(502, "agent_unreachable", `agent unreachable: ${cause}`, {}, error);
}
