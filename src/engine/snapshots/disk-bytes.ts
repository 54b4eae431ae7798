import { stat } from "node:fs/promises";
import type { BaseFiles } from "../../vm/base-store.ts";

/** Of stat(2)'s st_blocks, whatever the file system's own blocks are */
const BLOCK_BYTES = 512;

/** What memory.bin and state.bin take on the disk, holes not counted. */
export async function diskBytesOf({ memoryPath, statePath }: BaseFiles): Promise<number> {
  const [memory, state] = await Promise.all([stat(memoryPath), stat(statePath)]);
  return (memory.blocks + state.blocks) * BLOCK_BYTES;
}

/** What one file takes on the disk, holes not counted; null when there is none. */
export async function fileDiskBytes(path: string): Promise<number | null> {
  try {
    return (await stat(path)).blocks * BLOCK_BYTES;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
