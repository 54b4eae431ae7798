import { basePaths } from "../../vm/base-store.ts";
import { VmError } from "../../vm/vm-error.ts";
import { EngineError, jsonError, vmNotFound } from "../engine-error.ts";
import { agentFailure } from "../tasks/agent-failure.ts";
import { agentUnreachable, type EngineVm } from "../vms/engine-vm.ts";
import { describeVm, type VmInfo } from "../vms/vm-info.ts";
import type { VmTable } from "../vms/vm-table.ts";
import { fileDiskBytes } from "./disk-bytes.ts";
import type { SnapshotType } from "./snapshot-record.ts";
import type { RestoreOrder, SnapshotVm, SnapshotVms } from "./snapshot-vms.ts";

/** The engine's VMs, for its snapshots. */
export class EngineVms implements SnapshotVms<VmInfo> {
  readonly #vms: VmTable;
  readonly #baseUrl: () => string;

  constructor(vms: VmTable, baseUrl: () => string) {
    this.#vms = vms;
    this.#baseUrl = baseUrl;
  }

  get(vmId: string): SnapshotVm {
    const vm = this.#vms.get(vmId);
    const { record, machine } = vm;
    if (record.paused) throw pausedVm();
    return {
      id: vm.id,
      tenantId: record.tenant_id,
      profile: record.profile,
      egressPolicy: record.egress_policy,
      guestIp: record.guest_ip,
      agentToken: record.agent_token,
      copyBytes: (type) => copyBytes(vm, type),
      copy: async (work, signal, staysStill) => {
        try {
          return await machine.copy(work, signal, staysStill);
        } catch (error) {
          throw this.#copyFailure(vm, error, signal);
        }
      },
    };
  }

  /** It may have been paused, deleted or stopped, or have died, since it was asked for. */
  #copyFailure(vm: EngineVm, error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted || error instanceof EngineError) return error;
    if (error instanceof VmError && error.code === "paused") return pausedVm();
    if (!this.#vms.has(vm.id)) return vmNotFound();
    return vm.isRunning
      ? agentFailure(error, signal)
      : agentUnreachable(vm.record.cause ?? "the VM has ended", error);
  }

  async restore(order: RestoreOrder, signal: AbortSignal): Promise<VmInfo> {
    const { snapshotId, source, tenantId, profile, egressPolicy, agentToken } = order;
    const snapshot = { id: snapshotId, source: { ...source, isBuildable: false }, agentToken };
    const vm = await this.#vms.create({ profile: profile ?? "", tenantId, egressPolicy, snapshot }, signal);
    return describeVm(vm, this.#baseUrl());
  }

  remove(vmId: string): Promise<void> {
    return this.#vms.remove(vmId);
  }

  restoredFrom(snapshotId: string): string[] {
    const isRestored = ({ record }: EngineVm) => record.source_snapshot_id === snapshotId;
    return this.#vms
      .list()
      .filter(isRestored)
      .map((vm) => vm.id);
  }
}

function pausedVm(): EngineError {
  return jsonError(409, "vm_paused", "the VM is paused, and its agent cannot take part; resume it first");
}

/** A file system that shares blocks takes less of a full one; nobody knows before. */
async function copyBytes({ record, machine }: EngineVm, type: SnapshotType): Promise<number> {
  const written = Math.min(machine.usage().memoryBytes, record.memory_bytes);
  // What it wrote, and beside that what of it differs.
  if (type === "diff") return 2 * written;
  const { storePath, name } = machine.record.origin;
  const parent = await fileDiskBytes(basePaths(storePath, name).memoryPath);
  return parent === null ? record.memory_bytes : Math.min(record.memory_bytes, parent + written);
}
