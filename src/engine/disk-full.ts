import { type EngineError, jsonError } from "./engine-error.ts";

const CODES = ["ENOSPC", "EDQUOT"];

/** Does `work`; a disk that is full, or a quota of its file system, is told as such. */
export async function withDiskErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskFull(error) ?? error;
  }
}

/** The answer to what a full disk is the cause of; null for anything else. */
export function diskFull(error: unknown): EngineError | null {
  return isDiskError(error)
    ? jsonError(507, "disk_full", "insufficient disk space: the disk became full", {}, error)
    : null;
}

export function isDiskError(error: unknown): boolean {
  return CODES.includes((error as NodeJS.ErrnoException | null)?.code ?? "");
}
