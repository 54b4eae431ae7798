import { open } from "node:fs/promises";

const BLOCK_BYTES = 4 * 1_048_576;

/** SHA-256 of a file's content in hex, read in blocks of 4 MiB. */
export async function sha256OfFile(path: string, signal?: AbortSignal): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  const block = new Uint8Array(BLOCK_BYTES);
  await using file = await open(path, "r");
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, null);
    if (bytesRead === 0) return hasher.digest("hex");
    hasher.update(block.subarray(0, bytesRead));
  }
}
