import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../base/atomic-file.ts";
import { acquireLock } from "../base/owned-lock.ts";
import { identityOf, isAlive } from "../base/process-identity.ts";
import { randomId } from "../base/random-id.ts";
import { type BaseFiles, baseFilesIn } from "./base-store.ts";
import { VmError } from "./vm-error.ts";

/** Checkpoints a store takes, those in the making included; each may need as much disk as a base */
export const MAX_CHECKPOINTS = 16;

const ID = /^chk_[a-z2-7]{26}$/;
const DRAFT = /^\.chk_[a-z2-7]{26}\.([^.]+)\.building$/;

/** Also keeps what a client sends from leading out of the store. */
export function isCheckpointId(text: string): boolean {
  return ID.test(text);
}

export function checkpointMissing(id: string): VmError {
  return new VmError(
    "checkpoint_missing",
    `there is no checkpoint '${id.slice(0, 64)}'. Make one with checkpoint and use the id it returns.`,
  );
}

/** A checkpoint in the making, in a directory beside. It appears in the store by `publish`, whole, or not at all. */
export class CheckpointDraft implements AsyncDisposable {
  readonly id = randomId("chk_");
  readonly files: BaseFiles;
  readonly #snapshotsDir: string;

  private constructor(snapshotsDir: string) {
    this.#snapshotsDir = snapshotsDir;
    this.files = baseFilesIn(join(snapshotsDir, `.${this.id}.${identityOf(process.pid)}.building`));
  }

  /** Rejects with `checkpoint_cap` when the store is full. Removes what dead servers left unfinished. */
  static async create(snapshotsDir: string, signal: AbortSignal): Promise<CheckpointDraft> {
    // Of two at once, one takes the last room and the other is refused.
    await using _turn = await acquireLock(join(snapshotsDir, ".checkpoints.lock"), signal);
    if ((await countCheckpoints(snapshotsDir)) >= MAX_CHECKPOINTS) {
      throw new VmError(
        "checkpoint_cap",
        `the store holds ${MAX_CHECKPOINTS} checkpoints, and takes no more. Remove one: ignition-mcp base rm <checkpoint_id>; list them: ignition-mcp base ls`,
      );
    }
    const draft = new CheckpointDraft(snapshotsDir);
    // A session's memory is for nobody else to read.
    await mkdir(draft.files.dir, { mode: 0o700 });
    return draft;
  }

  /** Where its files are from now on. */
  async publish(): Promise<BaseFiles> {
    const published = baseFilesIn(join(this.#snapshotsDir, this.id));
    await syncDirectory(this.files.dir);
    await rename(this.files.dir, published.dir);
    await syncDirectory(this.#snapshotsDir);
    return published;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.files.dir, { recursive: true, force: true });
  }
}

async function countCheckpoints(snapshotsDir: string): Promise<number> {
  let count = 0;
  for (const name of await readdir(snapshotsDir)) {
    const owner = DRAFT.exec(name)?.[1];
    if (owner !== undefined && !isAlive(owner)) {
      await rm(join(snapshotsDir, name), { recursive: true, force: true });
    } else if (owner !== undefined || isCheckpointId(name)) count++;
  }
  return count;
}
