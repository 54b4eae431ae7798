import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory, writeFileAtomically } from "../../base/atomic-file.ts";
import type { BaseManifest } from "../../vm/base-manifest.ts";
import { type BaseFiles, baseFilesIn } from "../../vm/base-store.ts";
import { filesOf, pathFields, type SnapshotMetadata } from "./snapshot-record.ts";

/** Beginnings of names that are no snapshots; what is left of them at an engine's start is rubbish. */
export const DRAFT_PREFIXES = [".taking-", ".import-", ".removing-"] as const;

export type RecordFields = Omit<SnapshotMetadata, keyof ReturnType<typeof pathFields>>;

/** A snapshot in the making, in a hidden directory. It appears by `publish`, whole, or not at all. */
export class SnapshotDraft implements AsyncDisposable {
  readonly files: BaseFiles;
  readonly #snapshotsDir: string;

  private constructor(snapshotsDir: string, name: string) {
    this.#snapshotsDir = snapshotsDir;
    this.files = baseFilesIn(join(snapshotsDir, name));
  }

  static async create(snapshotsDir: string, prefix: ".taking-" | ".import-"): Promise<SnapshotDraft> {
    const draft = new SnapshotDraft(snapshotsDir, `${prefix}${crypto.randomUUID()}`);
    // A VM's memory is for nobody else to read.
    await mkdir(draft.files.dir, { mode: 0o700 });
    return draft;
  }

  /** Gives it the name by which it is a snapshot. memory.bin and state.bin are on disk and hashed. */
  async publish(record: RecordFields, manifest: BaseManifest, rootfsPath: string): Promise<void> {
    const published = filesOf(this.#snapshotsDir, record.snapshot_id);
    const metadata: SnapshotMetadata = { ...record, ...pathFields(published, rootfsPath) };
    await writeJson(this.files.manifestPath, manifest);
    await writeJson(join(this.files.dir, "metadata.json"), metadata);
    await syncDirectory(this.files.dir);
    await rename(this.files.dir, published.dir);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.files.dir, { recursive: true, force: true });
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFileAtomically(path, `${JSON.stringify(value, null, 2)}\n`, 0o600);
}

/** Makes the directory of snapshots when there is none. */
export async function makeSnapshotsDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}
