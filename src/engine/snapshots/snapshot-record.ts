import { z } from "zod";
import { TENANT_ID_PATTERN } from "../../base/tenant-id.ts";
import type { BaseManifest } from "../../vm/base-manifest.ts";
import { type BaseFiles, baseFilesIn } from "../../vm/base-store.ts";

/** `<time of its making in ns since 1970>`; also keeps what a client sends from leading out of the directory. */
export const SNAPSHOT_ID = /^snap-\d{1,20}$/;
const MAX_NAME_CHARACTERS = 128;

const name = z.string().max(MAX_NAME_CHARACTERS);

/** What a snapshot is, to clients, in its directory and in a bundle. */
export const snapshotFields = {
  snapshot_id: z.string().regex(SNAPSHOT_ID),
  source_vm_id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
  tenant_id: z.string().regex(TENANT_ID_PATTERN).optional(),
  profile: name.optional(),
  egress_policy: z.enum(["deny_all", "profile", "allow_all"]).optional(),
  snapshot_type: z.enum(["full", "diff"]),
  base_snapshot_id: z.string().regex(SNAPSHOT_ID).optional(),
  /** RFC 3339, UTC */
  created_at: z.iso.datetime(),
};

export const snapshotObject = z.object(snapshotFields);
/** One entry of `GET /snapshots`. */
export type SnapshotObject = z.infer<typeof snapshotObject>;
export type SnapshotType = SnapshotObject["snapshot_type"];

/** `metadata.json`. There is no tap, no MAC and no copy of the root here: those fields are empty, but they are there. */
export const snapshotMetadata = z
  .strictObject({
    schema_version: z.literal(1),
    ...snapshotFields,
    guest_ip: name,
    tap_device: name,
    vsock_path: z.string().max(4096),
    mac_addr: name,
    /** Of the source VM; a VM restored from it answers to the same */
    agent_token: z.string().max(256).optional(),
    disk_path: z.string().max(4096),
    mem_file_path: z.string().max(4096),
    stat_file_path: z.string().max(4096),
    disk_copy_path: z.string().max(4096),
    /** It came in a bundle. Never in one: each engine says so itself */
    imported: z.literal(true).optional(),
  })
  .refine(hasBaseWhenDiff, "a diff names its base, and a full snapshot has none");
export type SnapshotMetadata = z.infer<typeof snapshotMetadata>;

export function hasBaseWhenDiff(fields: Pick<SnapshotObject, "snapshot_type" | "base_snapshot_id">): boolean {
  return (fields.snapshot_type === "diff") === (fields.base_snapshot_id !== undefined);
}

/** A snapshot that is whole on disk. Its directory has the files of a base, memory.bin of a diff being a diff. */
export interface Snapshot {
  id: string;
  metadata: SnapshotMetadata;
  /** Of this directory's memory.bin and state.bin */
  manifest: BaseManifest;
  files: BaseFiles;
  /** On disk, holes not counted, in `bytes` */
  diskBytes: number;
}

/** Without paths, addresses and the token. */
export function objectOf({ metadata }: Snapshot): SnapshotObject {
  return snapshotObject.parse(metadata);
}

export function filesOf(snapshotsDir: string, id: string): BaseFiles & { metadataPath: string } {
  const files = baseFilesIn(`${snapshotsDir}/${id}`);
  return { ...files, metadataPath: `${files.dir}/metadata.json` };
}

/** The three paths a snapshot's record names, and that of the root. */
export function pathFields(
  files: BaseFiles,
  rootfsPath: string,
): Pick<SnapshotMetadata, "disk_path" | "mem_file_path" | "stat_file_path" | "disk_copy_path"> {
  return {
    disk_path: rootfsPath,
    mem_file_path: files.memoryPath,
    stat_file_path: files.statePath,
    disk_copy_path: "",
  };
}
