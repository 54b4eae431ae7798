import { readFileSync } from "node:fs";
import { link, rm, writeFile } from "node:fs/promises";
import { identityOf, isAlive } from "./process-identity.ts";
import { sleep } from "./wait.ts";

const RETRY_MS = 50;

/**
 * A lock file that names its owner's process, so that a dead owner's lock is recognised and taken over.
 * Waits while a live process holds it; `onWait` is told the holder once per try.
 */
export async function acquireLock(
  path: string,
  signal: AbortSignal,
  onWait?: (holder: string) => void,
): Promise<AsyncDisposable> {
  const mine = identityOf(process.pid);
  if (mine === null) throw new Error("cannot read this process's own start time");
  const candidatePath = `${path}.${mine}.${crypto.randomUUID()}`;
  await writeFile(candidatePath, mine);
  try {
    for (;;) {
      if (await linked(candidatePath, path)) break;
      const holder = holderOf(path);
      if (holder !== null && isAlive(holder)) {
        onWait?.(holder);
        await sleep(RETRY_MS, signal);
      } else if (holder !== null) {
        await removeDeadLock(path, holder, signal);
      }
    }
  } finally {
    await rm(candidatePath, { force: true });
  }
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
}

/**
 * Of several that saw the same dead holder only one may remove its lock: a slower one would remove the lock
 * that the faster one has taken by then. Their turn is a lock too, and can have lost its owner as well.
 */
async function removeDeadLock(path: string, deadHolder: string, signal: AbortSignal): Promise<void> {
  await using _turn = await acquireLock(`${path}.turn`, signal);
  if (holderOf(path) === deadHolder) await rm(path, { force: true });
}

/** link(2) fails when the name exists, and the file appears with its content. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function holderOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
