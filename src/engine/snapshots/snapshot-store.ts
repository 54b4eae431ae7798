import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../../base/atomic-file.ts";
import type { Logger } from "../../base/logger.ts";
import type { BaseManifest } from "../../vm/base-manifest.ts";
import { sealFiles } from "../../vm/file-seal.ts";
import { readSnapshot } from "./read-snapshot.ts";
import {
  DRAFT_PREFIXES,
  makeSnapshotsDirectory,
  type RecordFields,
  type SnapshotDraft,
} from "./snapshot-draft.ts";
import { SNAPSHOT_ID, type Snapshot } from "./snapshot-record.ts";
import { type RootFile, sealedFiles } from "./sound-snapshot.ts";

/** The snapshots of an engine, one directory each. Layout: docs/wire/snapshot.md. Only one process uses it at a time. */
export class SnapshotStore {
  readonly dir: string;
  readonly #log: Logger;
  readonly #snapshots = new Map<string, Snapshot>();

  private constructor(dir: string, log: Logger) {
    this.dir = dir;
    this.#log = log;
  }

  /** Removes what a dead engine left unfinished, and sets aside what is damaged. */
  static async open(dir: string, log: Logger): Promise<SnapshotStore> {
    const store = new SnapshotStore(dir, log);
    await makeSnapshotsDirectory(dir);
    for (const name of await readdir(dir)) {
      if (DRAFT_PREFIXES.some((prefix) => name.startsWith(prefix)))
        await rm(join(dir, name), { recursive: true, force: true });
      else if (SNAPSHOT_ID.test(name)) await store.#load(name).catch((error) => store.#setAside(name, error));
    }
    return store;
  }

  /** Oldest first. */
  list(): Snapshot[] {
    return [...this.#snapshots.values()].sort(byAge);
  }

  get(id: string): Snapshot | null {
    return this.#snapshots.get(id) ?? null;
  }

  /** Newest full one that was taken of a VM here: what an imported one says of its VM is its sender's word. */
  latestFull(vmId: string): Snapshot | null {
    const full = this.list().filter(
      ({ metadata: { source_vm_id, snapshot_type, imported } }) =>
        source_vm_id === vmId && snapshot_type === "full" && !imported,
    );
    return full.at(-1) ?? null;
  }

  /** Diffs that are nothing without this one. */
  diffsOf(id: string): Snapshot[] {
    return this.list().filter(({ metadata }) => metadata.base_snapshot_id === id);
  }

  /** Makes a snapshot of a draft. When this rejects there is none, at whatever step: nobody would know of it. */
  async publish(
    draft: SnapshotDraft,
    record: RecordFields,
    manifest: BaseManifest,
    rootfs: RootFile,
  ): Promise<Snapshot> {
    const id = record.snapshot_id;
    await draft.publish(record, manifest, rootfs.path);
    try {
      await syncDirectory(this.dir);
      const snapshot = await this.#load(id);
      await this.#seal(snapshot, rootfs);
      return snapshot;
    } catch (error) {
      await this.remove({ id });
      throw error;
    }
  }

  /** It is gone at once, and its files soon after, also when the engine dies in between. */
  async remove({ id }: Pick<Snapshot, "id">): Promise<void> {
    const removed = join(this.dir, `.removing-${crypto.randomUUID()}`);
    await rename(join(this.dir, id), removed);
    this.#snapshots.delete(id);
    await syncDirectory(this.dir);
    await rm(removed, { recursive: true, force: true });
  }

  async #load(id: string): Promise<Snapshot> {
    const snapshot = await readSnapshot(this.dir, id);
    this.#snapshots.set(id, snapshot);
    return snapshot;
  }

  /** Its files were hashed just now, and the root before. Without seals they are hashed again, which is always right. */
  async #seal(snapshot: Snapshot, rootfs: RootFile): Promise<void> {
    try {
      await sealFiles(sealedFiles(snapshot, rootfs), snapshot.files.sealPath);
    } catch (error) {
      this.#log.warn({ snapshot: snapshot.id, err: error }, "verified.json could not be written");
    }
  }

  async #setAside(name: string, error: Error): Promise<void> {
    const names = await readdir(this.dir);
    let aside = `${name}.damaged`;
    for (let number = 2; names.includes(aside); number++) aside = `${name}.damaged-${number}`;
    await rename(join(this.dir, name), join(this.dir, aside));
    this.#log.warn({ snapshot: name, err: error }, `a snapshot cannot be read and is set aside as ${aside}`);
  }
}

/** Ids are times; the made ones all have as many digits. */
function byAge(a: Snapshot, b: Snapshot): number {
  return a.metadata.created_at.localeCompare(b.metadata.created_at) || a.id.localeCompare(b.id);
}
