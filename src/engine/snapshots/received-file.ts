import { type FileHandle, open } from "node:fs/promises";
import { writeNonZero } from "../../vm/sparse-copy.ts";

/** Room on the disk is looked at each time this much came */
const LOOK_BYTES = 64 * 1_048_576;

export interface Received {
  bytes: number;
  sha256: string;
}

/**
 * Writes what comes to a new file, zeros as holes, or only hashes it when there is no path. Whole and on disk when this
 * resolves. `requireRoom` throws when the disk must not get fuller.
 */
export async function receiveFile(
  pieces: AsyncIterable<Uint8Array>,
  path: string | null,
  requireRoom: () => Promise<void>,
): Promise<Received> {
  const hasher = new Bun.CryptoHasher("sha256");
  await using file = path === null ? null : await open(path, "wx", 0o600);
  let bytes = 0;
  let looked = 0;
  for await (const piece of pieces) {
    hasher.update(piece);
    if (file) writeNonZero(file.fd, piece, bytes);
    bytes += piece.byteLength;
    if (bytes - looked < LOOK_BYTES) continue;
    looked = bytes;
    if (file) await requireRoom();
  }
  await finish(file, bytes);
  return { bytes, sha256: hasher.digest("hex") };
}

async function finish(file: FileHandle | null, bytes: number): Promise<void> {
  await file?.truncate(bytes);
  await file?.sync();
}
