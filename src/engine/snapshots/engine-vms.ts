import { jsonError } from "../engine-error.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { describeVm, type VmInfo } from "../vms/vm-info.ts";
import type { VmTable } from "../vms/vm-table.ts";
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
    if (record.paused)
      throw jsonError(409, "vm_paused", "the VM is paused, and its agent cannot take part; resume it first");
    return {
      id: vm.id,
      tenantId: record.tenant_id,
      profile: record.profile,
      egressPolicy: record.egress_policy,
      guestIp: record.guest_ip,
      agentToken: record.agent_token,
      copy: (work, signal) => machine.copy(work, signal),
    };
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
