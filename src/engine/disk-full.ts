import { EngineError, jsonError } from "./engine-error.ts";

const CODES = ["ENOSPC", "EDQUOT"];

/** Does `work`; a disk that is full, or a quota of its file system, is told as such. */
export async function withDiskErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskFull(error) ?? error;
  }
}

/** The answer to what a full disk is the cause of, at whatever depth; null for anything else. */
export function diskFull(error: unknown): EngineError | null {
  if (error instanceof EngineError && error.status === 507) return error;
  return isDiskError(error)
    ? jsonError(507, "disk_full", "insufficient disk space: the disk became full", {}, error)
    : null;
}

/** Also when it is the cause of the cause: each layer tells it in its own words. */
export function isDiskError(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (CODES.includes((cause as NodeJS.ErrnoException).code ?? "")) return true;
  return false;
}
