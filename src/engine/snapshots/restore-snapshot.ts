import type { DiskFloor } from "../disk-floor.ts";
import { diskFull } from "../disk-full.ts";
import type { MergedDiffs } from "./merged-diffs.ts";
import { restoreError, restoreFailure } from "./restore-error.ts";
import type { Snapshot, SnapshotMetadata } from "./snapshot-record.ts";
import type { SnapshotStore } from "./snapshot-store.ts";
import type { RestoreOrder, RestoreSource, SnapshotVms } from "./snapshot-vms.ts";
import { type RootFile, unsoundness } from "./sound-snapshot.ts";

export interface RestoreRequest {
  tenantId: string | undefined;
  egressPolicy: SnapshotMetadata["egress_policy"];
}

export interface RestoreParts<Info> {
  store: SnapshotStore;
  merged: MergedDiffs;
  /** Holds `snapshots/` */
  rootPath: string;
  disk: DiskFloor;
  vms: Pick<SnapshotVms<Info>, "restore">;
  rootfs(): Promise<RootFile>;
}

/** A new VM that goes on from a snapshot, also beside the VM it was taken of. Rejects with nothing left behind. */
export async function restoreSnapshot<Info>(
  parts: RestoreParts<Info>,
  id: string,
  request: RestoreRequest,
  signal: AbortSignal,
): Promise<Info> {
  const snapshot = parts.store.get(id);
  if (!snapshot) throw restoreError("snapshot_not_found", "snapshot not found", id);
  refuseMismatch(snapshot, request);
  try {
    const source = await sourceOf(parts, snapshot, signal);
    return await parts.vms.restore(orderOf(snapshot, source, request), signal);
  } catch (error) {
    signal.throwIfAborted();
    throw restoreFailure(error, id);
  }
}

function refuseMismatch({ id, metadata }: Snapshot, { tenantId, egressPolicy }: RestoreRequest): void {
  if (tenantId !== undefined && tenantId !== metadata.tenant_id)
    throw restoreError("tenant_mismatch", "tenant_id does not match snapshot tenant", id);
  const ofSnapshot = metadata.egress_policy ?? "profile";
  if (egressPolicy === undefined || egressPolicy === ofSnapshot) return;
  const text = `egress_policy does not match snapshot egress_policy: it is ${ofSnapshot}, and ${egressPolicy} was asked for`;
  throw restoreError("egress_policy_mismatch", text, id);
}

async function sourceOf<Info>(
  parts: RestoreParts<Info>,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<RestoreSource> {
  const { id, metadata, manifest } = snapshot;
  const rootfs = await parts.rootfs();
  const refuseUnsound = async (used: Snapshot) => {
    const unsound = await unsoundness(used, rootfs, signal);
    if (unsound !== null)
      throw restoreError("firecracker_restore_failed", `it cannot be restored: ${unsound}`, id);
  };
  const size = { cpus: manifest.cpus, memoryBytes: manifest.memoryBytes };
  await refuseUnsound(snapshot);
  if (metadata.base_snapshot_id === undefined) return { storePath: parts.rootPath, name: id, ...size };
  const parent = parts.store.get(metadata.base_snapshot_id);
  if (!parent) {
    const text = `its base snapshot ${metadata.base_snapshot_id} is not here`;
    throw restoreError("diff_base_missing", text, id);
  }
  await refuseUnsound(parent);
  // At most: a file system that shares blocks takes less, and what is merged already takes none.
  if (!(await parts.merged.has(id))) await parts.disk.require(parent.diskBytes + snapshot.diskBytes);
  await merge(parts.merged, snapshot, parent, rootfs, signal);
  return { storePath: parts.merged.path, name: id, ...size };
}

async function merge(
  merged: MergedDiffs,
  diff: Snapshot,
  parent: Snapshot,
  rootfs: RootFile,
  signal: AbortSignal,
): Promise<void> {
  try {
    await merged.make(diff, parent, rootfs, signal);
  } catch (error) {
    signal.throwIfAborted();
    const text = `its pages could not be put over ${parent.id}: ${(error as Error).message}`;
    throw diskFull(error) ?? restoreError("memory_merge_failed", text, diff.id, error);
  }
}

function orderOf({ id, metadata }: Snapshot, source: RestoreSource, request: RestoreRequest): RestoreOrder {
  return {
    snapshotId: id,
    source,
    tenantId: metadata.tenant_id,
    profile: metadata.profile,
    egressPolicy: metadata.egress_policy ?? request.egressPolicy,
    agentToken: metadata.agent_token,
  };
}
