import { open } from "node:fs/promises";
import type { BaseFiles } from "../../vm/base-store.ts";
import type { DiskFloor } from "../disk-floor.ts";
import { bodyPieces } from "./body-pieces.ts";
import { bundleRefused } from "./bundle-error.ts";
import { type BundleManifest, entryOf, receivedManifest } from "./bundle-manifest.ts";
import { diskBytesOf } from "./disk-bytes.ts";
import { readDiffIndex } from "./memory-diff.ts";
import { receiveBundle } from "./receive-bundle.ts";
import { SnapshotDraft } from "./snapshot-draft.ts";
import type { Snapshot, SnapshotType } from "./snapshot-record.ts";
import type { SnapshotStore } from "./snapshot-store.ts";
import type { RootFile } from "./sound-snapshot.ts";

export interface ImportParts {
  store: SnapshotStore;
  disk: DiskFloor;
  rootfs(): Promise<RootFile>;
  /** How long a sender may send nothing, in `ms` */
  idleMs: number;
  /** Throws when the tenant may not have it */
  admit(tenantId: string | undefined, diskBytes: number): void;
  /** Does the last step while nothing else happens to snapshots */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export interface Imported {
  snapshot_id: string;
  snapshot_type: SnapshotType;
  base_snapshot_id?: string | undefined;
  status: "imported" | "already_present";
  /** Nothing was written */
  skipped: boolean;
}

/** Takes up a bundle. It appears whole or not at all. */
export async function importSnapshot(
  parts: ImportParts,
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<Imported> {
  const rootfs = await parts.rootfs();
  await using draft = await SnapshotDraft.create(parts.store.dir, ".import-");
  let isPresent = false;
  const { manifest, metadata } = await receiveBundle(bodyPieces(body, parts.idleMs, signal), {
    requireRoom: () => parts.disk.require(),
    begin: async (manifest) => {
      isPresent = await isAcceptable(parts, manifest, rootfs);
      return isPresent ? null : draft.files;
    },
  });
  if (isPresent) return answer(manifest, "already_present");
  return await parts.alone(async () => {
    signal.throwIfAborted();
    // What was so before the bundle came may have changed while it did.
    if (await isAcceptable(parts, manifest, rootfs)) return answer(manifest, "already_present");
    await requireItsBase(parts.store, manifest, draft.files);
    parts.admit(manifest.tenant_id, await diskBytesOf(draft.files));
    const record = { ...metadata, imported: true } as const;
    await parts.store.publish(draft, record, receivedManifest(manifest), rootfs);
    return answer(manifest, "imported");
  });
}

/** True when it is here already. Throws why it cannot be taken up. */
async function isAcceptable(
  { store, disk }: ImportParts,
  manifest: BundleManifest,
  rootfs: RootFile,
): Promise<boolean> {
  const { snapshot_id, base_snapshot_id, machine } = manifest;
  const root = entryOf(manifest, "rootfs.ext4");
  if (
    root.sha256 !== rootfs.sha256 ||
    root.size_bytes !== rootfs.bytes ||
    machine.image.rootfs !== rootfs.sha256
  )
    throw bundleRefused(
      "invalid_snapshot_bundle",
      "its root file system is not the one of this host; both hosts need the same image",
    );
  const present = store.get(snapshot_id);
  if (present) {
    if (isSame(present, manifest)) return true;
    throw bundleRefused("snapshot_conflict", `another snapshot ${snapshot_id} is here`);
  }
  if (base_snapshot_id !== undefined && store.get(base_snapshot_id)?.metadata.snapshot_type !== "full")
    throw bundleRefused(
      "diff_base_missing",
      `its base ${base_snapshot_id} is not here; import that one first`,
    );
  await disk.require(entryOf(manifest, "memory.bin").size_bytes);
  return false;
}

function isSame({ manifest: { files } }: Snapshot, bundle: BundleManifest): boolean {
  return (
    files.memory.sha256 === entryOf(bundle, "memory.bin").sha256 &&
    files.state.sha256 === entryOf(bundle, "state.bin").sha256
  );
}

async function requireItsBase(
  store: SnapshotStore,
  { base_snapshot_id }: BundleManifest,
  files: BaseFiles,
): Promise<void> {
  if (base_snapshot_id === undefined) return;
  await using file = await open(files.memoryPath, "r");
  const { parentSha256 } = await readDiffIndex(file);
  if (store.get(base_snapshot_id)?.manifest.files.memory.sha256 !== parentSha256)
    throw bundleRefused(
      "diff_base_missing",
      `${base_snapshot_id} is here, but it is not the one it is a diff of`,
    );
}

function answer(
  { snapshot_id, snapshot_type, base_snapshot_id }: BundleManifest,
  status: Imported["status"],
): Imported {
  return { snapshot_id, snapshot_type, base_snapshot_id, status, skipped: status === "already_present" };
}
