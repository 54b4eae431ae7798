import { z } from "zod";
import { type BaseManifest, baseManifest } from "../../vm/base-manifest.ts";
import {
  hasBaseWhenDiff,
  objectOf,
  type Snapshot,
  type SnapshotMetadata,
  snapshotFields,
} from "./snapshot-record.ts";

export const BUNDLE_TYPE = "application/vnd.anvil.snapshot-bundle";

/** What a bundle holds behind its manifest, in this order. */
export const BUNDLE_FILES = ["metadata.json", "memory.bin", "state.bin", "rootfs.ext4"] as const;
export type BundleFile = (typeof BUNDLE_FILES)[number];
export const MANIFEST_FILE = "manifest.json";
export const MAX_MANIFEST_BYTES = 262_144;
export const MAX_METADATA_BYTES = 65_536;

const file = z.strictObject({
  path: z.enum(BUNDLE_FILES),
  size_bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
type FileEntry = z.infer<typeof file>;

/** `manifest.json` of a bundle. `machine` is ours: what a snapshot's own manifest says besides its name and files. */
export const bundleManifest = z
  .strictObject({
    ...snapshotFields,
    files: z
      .array(file)
      .refine(namesEachOnce, "it must list each of the four other files once, sorted by path"),
    machine: baseManifest.omit({ name: true, kind: true, files: true }),
  })
  .refine(hasBaseWhenDiff, "a diff names its base, and a full snapshot has none");
export type BundleManifest = z.infer<typeof bundleManifest>;

function namesEachOnce(files: FileEntry[]): boolean {
  return files.map(({ path }) => path).join() === [...BUNDLE_FILES].sort().join();
}

export function entryOf(manifest: BundleManifest, path: BundleFile): FileEntry {
  return manifest.files.find((entry) => entry.path === path)!;
}

/** The record as it travels: without the token, and without what only the host it leaves knows. */
export function travellingMetadata({
  agent_token: _,
  imported: __,
  ...metadata
}: SnapshotMetadata): SnapshotMetadata {
  return {
    ...metadata,
    disk_path: "",
    mem_file_path: "",
    stat_file_path: "",
    disk_copy_path: "",
    vsock_path: "",
  };
}

export function manifestFor(snapshot: Snapshot, files: FileEntry[]): BundleManifest {
  const { name: _name, kind: _kind, files: _files, ...machine } = snapshot.manifest;
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return { ...objectOf(snapshot), files: sorted, machine };
}

/** The manifest a received snapshot gets in its directory. */
export function receivedManifest(manifest: BundleManifest): BaseManifest {
  const described = (path: BundleFile) => {
    const { size_bytes: bytes, sha256 } = entryOf(manifest, path);
    return { bytes, sha256 };
  };
  return {
    ...manifest.machine,
    kind: "checkpoint",
    name: manifest.snapshot_id,
    files: { memory: described("memory.bin"), state: described("state.bin") },
  };
}
