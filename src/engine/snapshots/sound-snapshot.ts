import { findDamage, type SealedFile } from "../../vm/file-seal.ts";
import type { Snapshot } from "./snapshot-record.ts";

/** What a snapshot stands on besides its own files. */
export type RootFile = SealedFile;

/** Device state, memory, root: in the order and under the names in which a clone's files are sealed. */
export function sealedFiles({ files, manifest }: Snapshot, rootfs: RootFile): SealedFile[] {
  return [
    { path: files.statePath, ...manifest.files.state },
    { path: files.memoryPath, ...manifest.files.memory },
    rootfs,
  ];
}

/** Why a snapshot must not be used, as a sentence, or null. Files that hashed right and did not change are not read again. */
export async function unsoundness(
  snapshot: Snapshot,
  rootfs: RootFile,
  signal: AbortSignal,
): Promise<string | null> {
  if (snapshot.manifest.image.rootfs !== rootfs.sha256)
    return `snapshot ${snapshot.id} was taken on another root file system than ${rootfs.path}`;
  const damaged = await findDamage(sealedFiles(snapshot, rootfs), snapshot.files.sealPath, signal);
  return damaged && `snapshot ${snapshot.id} is damaged: ${damaged.path} is not what its manifest says`;
}
