import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../../base/atomic-file.ts";
import type { Logger } from "../../base/logger.ts";
import { readSnapshot } from "./read-snapshot.ts";
import { DRAFT_PREFIXES, makeSnapshotsDirectory } from "./snapshot-draft.ts";
import { SNAPSHOT_ID, type Snapshot } from "./snapshot-record.ts";

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
      else if (SNAPSHOT_ID.test(name)) await store.load(name).catch((error) => store.#setAside(name, error));
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

  /** Newest full one of a VM. */
  latestFull(vmId: string): Snapshot | null {
    const full = this.list().filter(
      ({ metadata }) => metadata.source_vm_id === vmId && metadata.snapshot_type === "full",
    );
    return full.at(-1) ?? null;
  }

  /** Diffs that are nothing without this one. */
  diffsOf(id: string): Snapshot[] {
    return this.list().filter(({ metadata }) => metadata.base_snapshot_id === id);
  }

  /** Takes up a snapshot that was published. */
  async load(id: string): Promise<Snapshot> {
    const snapshot = await readSnapshot(this.dir, id);
    this.#snapshots.set(id, snapshot);
    return snapshot;
  }

  /** It is gone at once, and its files soon after, also when the engine dies in between. */
  async remove({ id, files }: Snapshot): Promise<void> {
    const removed = join(this.dir, `.removing-${crypto.randomUUID()}`);
    await rename(files.dir, removed);
    this.#snapshots.delete(id);
    await syncDirectory(this.dir);
    await rm(removed, { recursive: true, force: true });
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
