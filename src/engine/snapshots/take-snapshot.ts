import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BaseManifest } from "../../vm/base-manifest.ts";
import { describeFile } from "../../vm/file-seal.ts";
import { checkpointManifest } from "../../vm/take-checkpoint.ts";
import { jsonError } from "../engine-error.ts";
import type { MachineCopier } from "../vms/machine-copier.ts";
import { diskBytesOf } from "./disk-bytes.ts";
import { writeMemoryDiff } from "./memory-diff.ts";
import { type RecordFields, SnapshotDraft } from "./snapshot-draft.ts";
import type { Snapshot, SnapshotType } from "./snapshot-record.ts";
import type { SnapshotStore } from "./snapshot-store.ts";
import type { SnapshotVm } from "./snapshot-vms.ts";
import { unsoundness } from "./sound-snapshot.ts";

/** What is written, but for the page size of the host it is the same everywhere */
const PAGE_BYTES = 4096;

export interface TakeOrder {
  id: string;
  /** The full snapshot to take a diff against; null for a full one */
  parent: Snapshot | null;
  store: SnapshotStore;
  /** The VM does not go on once the snapshot is there */
  staysStill: boolean;
  /** Rejects when a snapshot of this size is too much */
  admit(diskBytes: number): Promise<void>;
}

/**
 * Takes a snapshot of a running VM, which goes on unless it is to stay still. It is published when this resolves; else
 * nothing is left.
 */
export async function takeSnapshot(vm: SnapshotVm, order: TakeOrder, signal: AbortSignal): Promise<Snapshot> {
  await using draft = await SnapshotDraft.create(order.store.dir, ".taking-");
  return await vm.copy(
    async (copier, untilEnd) => {
      const manifest = order.parent
        ? await takeDiff(copier, order.id, order.parent, draft, untilEnd)
        : await takeFull(copier, order.id, draft, untilEnd);
      await order.admit(await diskBytesOf(draft.files));
      untilEnd.throwIfAborted();
      return await order.store.publish(draft, recordOf(vm, order, manifest.created), manifest, copier.rootfs);
    },
    signal,
    order.staysStill,
  );
}

/** What kind a request means. Throws 400 for a diff without a full one. */
export function chooseParent(latestFull: Snapshot | null, wanted: SnapshotType | ""): Snapshot | null {
  if (wanted === "full") return null;
  if (wanted === "diff" && !latestFull)
    throw jsonError(
      400,
      "diff_without_full",
      "diff snapshot requires a full snapshot of this VM; take a full one first",
    );
  return latestFull;
}

async function takeFull(
  copier: MachineCopier,
  id: string,
  { files }: SnapshotDraft,
  signal: AbortSignal,
): Promise<BaseManifest> {
  const capture = await copier.captureMachine(files, signal);
  return checkpointManifest(id, copier.base, capture.files);
}

/**
 * The pages it has written since it was cloned are all that can differ from any earlier snapshot of it: they are copied in
 * the pause, and compared with the parent's after it.
 */
async function takeDiff(
  copier: MachineCopier,
  id: string,
  parent: Snapshot,
  { files }: SnapshotDraft,
  signal: AbortSignal,
): Promise<BaseManifest> {
  const unsound = await unsoundness(parent, copier.rootfs, signal);
  if (unsound !== null)
    throw jsonError(500, "snapshot_damaged", `no diff can be taken: ${unsound}; take a full snapshot`);
  const writtenPath = join(files.dir, "written.bin");
  const { ranges } = await copier.captureWrittenPages({ ...files, memoryPath: writtenPath }, signal);
  await using written = await open(writtenPath, "r");
  await using file = await open(parent.files.memoryPath, "r");
  const memory = {
    file,
    memoryBytes: parent.manifest.memoryBytes,
    sha256: parent.manifest.files.memory.sha256,
  };
  await writeMemoryDiff(memory, written, ranges, PAGE_BYTES, files.memoryPath, signal);
  await rm(writtenPath);
  const described = {
    memory: await describeFile(files.memoryPath, signal),
    state: await describeFile(files.statePath, signal),
  };
  const base = { name: parent.id, manifest: parent.manifest };
  return checkpointManifest(id, base, described);
}

function recordOf(vm: SnapshotVm, { id, parent }: TakeOrder, createdAt: string): RecordFields {
  return {
    schema_version: 1,
    snapshot_id: id,
    source_vm_id: vm.id,
    tenant_id: vm.tenantId,
    profile: vm.profile,
    egress_policy: vm.egressPolicy,
    snapshot_type: parent ? "diff" : "full",
    base_snapshot_id: parent?.id,
    created_at: createdAt,
    guest_ip: vm.guestIp,
    tap_device: "",
    vsock_path: "",
    mac_addr: "",
    agent_token: vm.agentToken,
  };
}
