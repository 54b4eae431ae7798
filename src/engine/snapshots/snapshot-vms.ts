import type { MachineCopier } from "../vms/machine-copier.ts";
import type { SnapshotMetadata, SnapshotType } from "./snapshot-record.ts";

/** Where a VM's memory and device state are: `<storePath>/snapshots/<name>/`, as of a base. */
export interface RestoreSource {
  storePath: string;
  name: string;
  cpus: number;
  memoryBytes: number;
}

/** What a restored VM is given of the snapshot and of the request for it. */
export interface RestoreOrder {
  snapshotId: string;
  source: RestoreSource;
  tenantId: string | undefined;
  profile: string | undefined;
  egressPolicy: SnapshotMetadata["egress_policy"];
  /** Undefined to make one */
  agentToken: string | undefined;
}

/** A VM that runs, as snapshots need it. */
export interface SnapshotVm {
  readonly id: string;
  readonly tenantId: string | undefined;
  readonly profile: string | undefined;
  readonly egressPolicy: SnapshotMetadata["egress_policy"];
  readonly guestIp: string;
  readonly agentToken: string;
  /** At most what a copy of it takes on the disk, also while it is made, in `bytes` */
  copyBytes(type: SnapshotType): Promise<number>;
  /** It goes on afterwards unless it `staysStill`; see src/vm/capture-machine.ts. One after another */
  copy<T>(
    work: (copier: MachineCopier, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    staysStill: boolean,
  ): Promise<T>;
}

/** The VMs of an engine, as snapshots need them. `Info` is what a client is answered about a VM. */
export interface SnapshotVms<Info> {
  /** Throws what a client is answered when there is none, or none that runs */
  get(vmId: string): SnapshotVm;
  /** Resolves when the VM is awake and on record. Nothing is left when it rejects */
  restore(order: RestoreOrder, signal: AbortSignal): Promise<Info>;
  remove(vmId: string): Promise<void>;
  /** Ids of VMs, running or only on record, that were restored from a snapshot */
  restoredFrom(snapshotId: string): string[];
}
