import { type FileHandle, open, readFile, stat } from "node:fs/promises";
import { writeFileAtomically } from "../base/atomic-file.ts";
import { sha256OfFile } from "../base/file-hash.ts";
import { within } from "../base/wait.ts";

/** Beyond it the disk is not slow, it is stuck. */
const SYNC_DEADLINE_MS = 600_000;

type SyncedFile = Pick<FileHandle, "sync" | "truncate" | "close">;

export interface SealedFile {
  path: string;
  bytes: number;
  sha256: string;
}

/**
 * Finds the first file that is not what its hash says, or null.
 *
 * Hashing hundreds of MiB at every start would cost more than a clone. So the hash, inode, size and change times of files
 * that hashed right are kept in `sealPath`; any later write or copy changes one of them, and the file is hashed again.
 */
export async function findDamage(
  files: SealedFile[],
  sealPath: string,
  signal?: AbortSignal,
): Promise<SealedFile | null> {
  const sealed = await readSeals(sealPath);
  const seals: Record<string, string> = {};
  for (const file of files) {
    const mark = await fileMark(file);
    if (mark === null) return file;
    if (sealed[file.path] !== mark) {
      if ((await stat(file.path)).size !== file.bytes) return file;
      if ((await sha256OfFile(file.path, signal)) !== file.sha256) return file;
    }
    seals[file.path] = mark;
  }
  if (!Bun.deepEquals(seals, sealed)) await keepSeals(sealPath, seals);
  return null;
}

/** Records files that are known to hash right, so that `findDamage` need not hash them. */
export async function sealFiles(files: SealedFile[], sealPath: string): Promise<void> {
  const seals: Record<string, string> = {};
  for (const file of files) {
    const mark = await fileMark(file);
    if (mark !== null) seals[file.path] = mark;
  }
  await keepSeals(sealPath, seals);
}

/**
 * Makes a new file's content last, and tells its size and hash. An aborted one is emptied, which spares the disk the rest,
 * and not waited for: the sync of hundreds of MiB takes what the disk takes.
 */
export async function describeFile(
  path: string,
  signal?: AbortSignal,
  openFile: (path: string, flags: string) => Promise<SyncedFile> = open,
): Promise<{ bytes: number; sha256: string }> {
  const file = await openFile(path, "r+");
  const synced = file.sync().finally(() => file.close());
  try {
    await within(synced, SYNC_DEADLINE_MS, `the disk to take ${path}`, signal);
  } catch (error) {
    // Whoever gave it up removes it.
    file.truncate(0).catch(() => undefined);
    throw error;
  }
  return { bytes: (await stat(path)).size, sha256: await sha256OfFile(path, signal) };
}

async function fileMark({ path, sha256 }: SealedFile): Promise<string | null> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [sha256, dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function readSeals(path: string): Promise<Record<string, string>> {
  try {
    const parsed: unknown = JSON.parse(await readFile(path, "utf8"));
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, string>) : {};
  } catch {
    // No seal, or an unreadable one: the files are hashed, which is always right.
    return {};
  }
}

async function keepSeals(path: string, seals: Record<string, string>): Promise<void> {
  try {
    await writeFileAtomically(path, JSON.stringify(seals));
  } catch (error) {
    // A store on a read-only file system works; its files are hashed once per server.
    if (!["EROFS", "EACCES", "EPERM", "ENOSPC"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  }
}
