import { stat } from "node:fs/promises";
import type { BaseFiles } from "../../vm/base-store.ts";

/** Of stat(2)'s st_blocks, whatever the file system's own blocks are */
const BLOCK_BYTES = 512;

/** What memory.bin and state.bin take on the disk, holes not counted. */
export async function diskBytesOf({ memoryPath, statePath }: BaseFiles): Promise<number> {
  const [memory, state] = await Promise.all([stat(memoryPath), stat(statePath)]);
  return (memory.blocks + state.blocks) * BLOCK_BYTES;
}
