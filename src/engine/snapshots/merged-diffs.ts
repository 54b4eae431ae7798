import { copyFile, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory, writeFileAtomically } from "../../base/atomic-file.ts";
import { baseFilesIn } from "../../vm/base-store.ts";
import { describeFile, type SealedFile, sealFiles } from "../../vm/file-seal.ts";
import { applyMemoryDiff } from "./memory-diff.ts";
import type { Snapshot } from "./snapshot-record.ts";

const DRAFT_PREFIX = ".merging-";

/**
 * Whole memories of diffs that were restored: `<path>/snapshots/<diff's id>/`, each in the layout of a base. Shared by all VMs
 * of a diff, and gone some time after the last of them.
 */
export class MergedDiffs {
  readonly path: string;
  readonly #dir: string;

  private constructor(path: string) {
    this.path = path;
    this.#dir = join(path, "snapshots");
  }

  /** Removes what was left half made, and what belongs to no diff any more. */
  static async open(path: string, isDiff: (id: string) => boolean): Promise<MergedDiffs> {
    const merged = new MergedDiffs(path);
    await mkdir(merged.#dir, { recursive: true, mode: 0o700 });
    await merged.sweep(isDiff);
    return merged;
  }

  /** Whether a diff's whole memory is on disk. */
  has(id: string): Promise<boolean> {
    return Bun.file(baseFilesIn(join(this.#dir, id)).manifestPath).exists();
  }

  /** Both snapshots and the root were found sound. */
  async make(diff: Snapshot, parent: Snapshot, rootfs: SealedFile, signal: AbortSignal): Promise<void> {
    if (await this.has(diff.id)) return;
    const made = baseFilesIn(join(this.#dir, diff.id));
    const draft = baseFilesIn(join(this.#dir, `${DRAFT_PREFIX}${crypto.randomUUID()}`));
    await mkdir(draft.dir, { mode: 0o700 });
    try {
      await mergeMemory(diff, parent, draft.memoryPath, signal);
      await copyFile(diff.files.statePath, draft.statePath);
      const files = {
        memory: await describeFile(draft.memoryPath, signal),
        state: await describeFile(draft.statePath, signal),
      };
      await writeFileAtomically(draft.manifestPath, JSON.stringify({ ...diff.manifest, files }), 0o600);
      signal.throwIfAborted();
      await rename(draft.dir, made.dir);
      await syncDirectory(this.#dir);
      const sealed = [
        { path: made.statePath, ...files.state },
        { path: made.memoryPath, ...files.memory },
        rootfs,
      ];
      await sealFiles(sealed, made.sealPath);
    } finally {
      await rm(draft.dir, { recursive: true, force: true });
    }
  }

  /** Keeps those that a VM stands on. Nothing must be restored meanwhile. */
  async sweep(isUsed: (id: string) => boolean): Promise<void> {
    for (const name of await readdir(this.#dir))
      if (!isUsed(name)) await rm(join(this.#dir, name), { recursive: true, force: true });
  }
}

async function mergeMemory(
  diff: Snapshot,
  parent: Snapshot,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(parent.files.memoryPath, "r");
  await using pages = await open(diff.files.memoryPath, "r");
  const { memoryBytes, files } = parent.manifest;
  await applyMemoryDiff({ file, memoryBytes, sha256: files.memory.sha256 }, pages, path, signal);
}
