import { acquireLock } from "../base/owned-lock.ts";
import { Deadline } from "./deadline.ts";

/** Another process has a lock, and kept it for as long as we waited. */
export class LockHeld extends Error {
  readonly pid: string;

  constructor(pid: string) {
    super(`process ${pid} has its lock`);
    this.pid = pid;
  }
}

/** Takes the lock of a file, `<path>.lock`. Rejects with `LockHeld` when another process keeps it for `limitMs`. */
export async function lockWithin(
  limitMs: number,
  path: string,
  signal?: AbortSignal,
): Promise<AsyncDisposable> {
  let holder = "";
  using deadline = new Deadline(limitMs, `its lock could not be taken within ${limitMs / 1000} s`);
  try {
    const end = AbortSignal.any([deadline.signal, ...(signal ? [signal] : [])]);
    return await acquireLock(`${path}.lock`, end, (identity) => {
      holder = identity;
    });
  } catch (error) {
    if (deadline.signal.aborted && holder !== "") throw new LockHeld(holder.split("-")[0]!);
    throw error;
  }
}
