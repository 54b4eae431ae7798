import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { atMost } from "../../base/at-most.ts";
import type { Logger } from "../../base/logger.ts";
import type { Config } from "../../config/config.ts";
import type { DiskFloor } from "../disk-floor.ts";
import { diskFull } from "../disk-full.ts";
import type { VmEgress } from "../egress/vm-egress.ts";
import { EngineError, jsonError, vmNotFound } from "../engine-error.ts";
import { nanoId } from "../nano-id.ts";
import { machineSourceOf } from "../profiles/machine-source.ts";
import type { Profiles } from "../profiles/profiles.ts";
import type { Tenants } from "../tenants/tenants.ts";
import { EngineVm } from "./engine-vm.ts";
import { freeGuestAddress } from "./guest-addresses.ts";
import type { MachineSource, Machines } from "./machine.ts";
import { prepareGuest } from "./prepare-guest.ts";
import { readVmRecords } from "./read-vm-records.ts";
import { takeOverVm } from "./take-over-vm.ts";
import type { VmRecord } from "./vm-record.ts";

const AGENT_TOKEN_BYTES = 32;
/** Each has deadlines to meet, while all of them share the processors */
const ADOPTED_AT_ONCE = 8;

/** What a new VM is to be. All but the profile may be left out. */
export interface CreateVm {
  /** "" for the default one */
  profile: string;
  tenantId?: string | undefined;
  egressPolicy?: VmRecord["egress_policy"];
  flockId?: string | undefined;
  agentId?: string | undefined;
  controlPlaneToken?: string | undefined;
  /** A snapshot to restore instead of the profile's base */
  snapshot?: { id: string; source: MachineSource; agentToken: string | undefined };
}

export interface VmTableParts {
  dir: string;
  /** Most that run at once, whoever they are for */
  maxVms: number;
  machines: Machines;
  config: Config;
  profiles: Profiles;
  tenants: Tenants;
  disk: DiskFloor;
  egress: VmEgress;
  log: Logger;
}

/** All VMs of this engine, by id. */
export class VmTable {
  readonly #parts: VmTableParts;
  readonly #vms = new Map<string, EngineVm>();
  readonly #making = new Set<Promise<void>>();
  readonly #lifetime = new AbortController();

  constructor(parts: VmTableParts) {
    this.#parts = parts;
    const isOf = (vm: EngineVm, tenantId: string) => vm.record.tenant_id === tenantId;
    parts.tenants.measure(
      "active_vms",
      (tenantId) => this.#active().filter((vm) => isOf(vm, tenantId)).length,
    );
  }

  /** Those that were made whole, the oldest first. */
  list(): EngineVm[] {
    return [...this.#vms.values()].filter(isThere);
  }

  /** Throws 404 for an unknown id. */
  get(id: string): EngineVm {
    const vm = this.#vms.get(id);
    if (vm && isThere(vm)) return vm;
    throw vmNotFound();
  }

  /** Whether `get` finds it. */
  has(id: string): boolean {
    return this.list().some((vm) => vm.id === id);
  }

  /** A VM that runs. Rejects with nothing left: 400, 403, 503, 507, and 500 for what the machine is to blame for. */
  async create(request: CreateVm, signal: AbortSignal): Promise<EngineVm> {
    const { profiles, tenants, disk, config } = this.#parts;
    const profile = await profiles.get(request.profile);
    await disk.require();
    const source = request.snapshot?.source ?? machineSourceOf(profile, config);
    this.#lifetime.signal.throwIfAborted();
    tenants.admit(request.tenantId, "active_vms");
    this.#requirePlace();
    const vm = this.#reserve(request, source);
    const making = this.#make(vm, source, AbortSignal.any([signal, this.#lifetime.signal]));
    this.#making.add(making);
    try {
      await making;
      return vm;
    } finally {
      this.#making.delete(making);
    }
  }

  async #make(vm: EngineVm, source: MachineSource, signal: AbortSignal): Promise<void> {
    try {
      await this.#start(vm, source, signal);
    } catch (error) {
      await this.#takeBack(vm);
      signal.throwIfAborted();
      throw error instanceof EngineError ? error : (diskFull(error) ?? spawnFailed(error as Error));
    }
  }

  /** Ends it and removes everything of it. Rejects with 404 for an unknown id; after another failure it is still there. */
  async remove(id: string): Promise<void> {
    await this.#drop(this.get(id));
  }

  /**
   * Takes over what an earlier engine left. Those that cannot be taken over are declared dead. Rejects, with all of them
   * left as they are, when it is this engine that lacks something.
   */
  async adopt(signal: AbortSignal): Promise<void> {
    const { dir, machines, log } = this.#parts;
    const { records, unreadable } = await readVmRecords(dir, log);
    if (records.some(({ state }) => state === "running")) await this.#requireGround();
    for (const id of unreadable) await machines.clear(null, machines.socketDirFor(id));
    const vms = records.map((record) => this.#keep(record));
    await atMost(ADOPTED_AT_ONCE, vms, (vm) => this.#adoptOne(vm, signal));
  }

  /** Makes no more, and leaves the others to the next engine, or ends them. */
  async close({ endVms }: { endVms: boolean }): Promise<void> {
    this.#lifetime.abort(jsonError(503, "engine_ending", "the engine is ending"));
    await Promise.allSettled(this.#making);
    const end = (vm: EngineVm) => (endVms ? this.#drop(vm) : vm.detach());
    await Promise.all([...this.#vms.values()].map(end));
  }

  async #requireGround(): Promise<void> {
    try {
      await this.#parts.machines.requireGround();
    } catch (error) {
      throw cannotAdopt(error as Error);
    }
  }

  #active(): EngineVm[] {
    return [...this.#vms.values()].filter(({ record }) => ["creating", "running"].includes(record.state));
  }

  #requirePlace(): void {
    const { maxVms } = this.#parts;
    if (this.#active().length < maxVms) return;
    const text = `the engine has ${maxVms} VMs, which is its IGN_ENGINE_MAX_VMS; delete one first`;
    throw jsonError(503, "too_many_vms", text);
  }

  /** Nothing is awaited here: from now on it counts. */
  #reserve(request: CreateVm, source: MachineSource): EngineVm {
    const vmId = nanoId("vm-");
    const taken = new Set([...this.#vms.values()].map(({ record }) => record.guest_ip));
    return this.#keep({
      schema_version: 1,
      vm_id: vmId,
      state: "creating",
      profile: request.profile || undefined,
      tenant_id: request.tenantId,
      egress_policy: request.egressPolicy,
      flock_id: request.flockId,
      agent_id: request.agentId,
      control_plane_token: request.controlPlaneToken,
      source_snapshot_id: request.snapshot?.id,
      agent_token: request.snapshot?.agentToken ?? randomBytes(AGENT_TOKEN_BYTES).toString("hex"),
      guest_ip: freeGuestAddress(taken),
      created_at: new Date().toISOString(),
      paused: false,
      forwards: [],
      cpus: source.cpus,
      memory_bytes: source.memoryBytes,
      socket_dir: this.#socketDirFor(vmId),
      machine: null,
    });
  }

  #socketDirFor(vmId: string): string {
    try {
      return this.#parts.machines.socketDirFor(vmId);
    } catch (error) {
      throw spawnFailed(error as Error);
    }
  }

  #keep(record: VmRecord): EngineVm {
    const vm = new EngineVm(record, join(this.#parts.dir, record.vm_id), this.#parts.log);
    this.#vms.set(vm.id, vm);
    return vm;
  }

  async #start(vm: EngineVm, source: MachineSource, signal: AbortSignal): Promise<void> {
    await mkdir(vm.dir, { mode: 0o700 });
    await vm.save();
    const machine = await this.#parts.machines.start(source, vm.place, signal);
    try {
      await this.#parts.egress.serve(vm, machine);
      await prepareGuest(machine, signal);
      await vm.attach(machine);
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #drop(vm: EngineVm): Promise<void> {
    await vm.remove(this.#parts.machines);
    this.#vms.delete(vm.id);
  }

  /** Nobody was told of it: what cannot be removed now is removed by the next engine. */
  async #takeBack(vm: EngineVm): Promise<void> {
    try {
      await this.#drop(vm);
    } catch (error) {
      this.#vms.delete(vm.id);
      this.#parts.log.error(
        { err: error, vm_id: vm.id },
        "a VM that could not be made was not removed whole",
      );
    }
  }

  async #adoptOne(vm: EngineVm, signal: AbortSignal): Promise<void> {
    const { machines, log } = this.#parts;
    const { record } = vm;
    if (record.state === "creating" || record.machine === null) {
      await machines.clear(null, record.socket_dir);
      await this.#drop(vm);
      log.warn({ vm_id: vm.id }, "a VM that was half made when the engine ended was removed");
      return;
    }
    if (record.state !== "running") return;
    try {
      vm.goOnWith(await takeOverVm(vm, record.machine, this.#parts, signal));
      log.info({ vm_id: vm.id }, "a VM was adopted");
    } catch (error) {
      await machines.clear(record.machine.vmm, record.socket_dir);
      await vm.declareDead(`it did not outlive the engine: ${(error as Error).message}`);
      log.error({ err: error, vm_id: vm.id }, "a VM could not be adopted");
    }
  }
}

/** Made whole, and not being removed. */
function isThere({ record, isRemoved }: EngineVm): boolean {
  return record.state !== "creating" && !isRemoved;
}

function cannotAdopt(error: Error): EngineError {
  const text = `VMs of an earlier engine run and cannot be taken over: ${error.message}. They go on; start the engine again when that is put right`;
  return jsonError(500, "cannot_adopt", text, {}, error);
}

function spawnFailed(error: Error): EngineError {
  return jsonError(500, "spawn_failed", `the VM could not be made: ${error.message}`, {}, error);
}
