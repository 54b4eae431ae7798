import { jsonError } from "../engine-error.ts";

/** A disk that is full, or a quota of its file system, is told as such. */
export async function withDiskErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDiskError(error)) throw error;
    throw jsonError(507, "disk_full", "insufficient disk space: the disk became full", {}, error);
  }
}

export function isDiskError(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");
}
