import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a whole file or nothing: temporary name, fsync, rename, fsync of the directory. */
export async function writeFileAtomically(path: string, content: string, mode = 0o644): Promise<void> {
  const temporaryPath = `${path}.tmp-${crypto.randomUUID()}`;
  try {
    await using file = await open(temporaryPath, "wx", mode);
    await file.writeFile(content);
    await file.sync();
    await rename(temporaryPath, path);
  } catch (error) {
    await rm(temporaryPath, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes renames and new names in a directory last. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory: FileHandle = await open(path, "r");
  await directory.sync();
}
