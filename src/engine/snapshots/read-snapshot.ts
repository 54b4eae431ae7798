import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { readBaseManifest } from "../../vm/base-manifest.ts";
import { diskBytesOf } from "./disk-bytes.ts";
import { filesOf, type Snapshot, snapshotMetadata } from "./snapshot-record.ts";

/**
 * Reads what a directory says of the snapshot in it. Throws an `Error` whose message completes "it is set aside: …" when it
 * is not one. Contents are not hashed: that is done before they are used.
 */
export async function readSnapshot(snapshotsDir: string, id: string): Promise<Snapshot> {
  const { metadataPath, ...files } = filesOf(snapshotsDir, id);
  const metadata = snapshotMetadata.parse(JSON.parse(await readFile(metadataPath, "utf8")));
  if (metadata.snapshot_id !== id) throw new Error(`metadata.json is of ${metadata.snapshot_id}`);
  const manifest = await readBaseManifest(files.manifestPath, id);
  if (!manifest) throw new Error("manifest.json is missing");
  if (manifest.kind !== "checkpoint" || manifest.name !== id)
    throw new Error(`manifest.json is of the ${manifest.kind} ${manifest.name}`);
  for (const name of ["memory", "state"] as const) {
    const { size } = await stat(join(files.dir, `${name}.bin`));
    if (size !== manifest.files[name].bytes)
      throw new Error(`${name}.bin has ${size} bytes, its manifest says ${manifest.files[name].bytes}`);
  }
  return { id, metadata, manifest, files, diskBytes: await diskBytesOf(files) };
}
