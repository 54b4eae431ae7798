import { readFileSync } from "node:fs";
import { link, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { identityOf, isAlive, isProcessIdentity } from "./process-identity.ts";
import { sleep } from "./wait.ts";

const RETRY_MS = 50;
const UUID = /^[0-9a-f-]{36}$/;

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
    await sweepCandidates(path);
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

/** Removes the candidates of processes that were killed before they could. */
async function sweepCandidates(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(prefix)) continue;
    const [owner, id, ...rest] = name.slice(prefix.length).split(".") as [string, ...string[]];
    const isCandidate = isProcessIdentity(owner) && id !== undefined && rest.length === 0 && UUID.test(id);
    if (isCandidate && !isAlive(owner)) await rm(join(dirname(path), name), { force: true });
  }
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
