import { constants, writeSync } from "node:fs";
import { copyFile, type FileHandle, open } from "node:fs/promises";

const PIECE_BYTES = 1_048_576;
/** Stretches of zeros of this size and place become holes */
const HOLE_BYTES = 65_536;
const ZEROS = new Uint8Array(HOLE_BYTES);
/** What file systems answer that cannot share blocks, or not between these two files */
const NO_REFLINK = ["ENOTSUP", "EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "ENOTTY", "EPERM"];

/**
 * Copies an open file to a new path and resolves with how many bytes it wrote: none where the file system shares the
 * blocks, else what is not zero. Linux only.
 */
export async function copySparsely(source: FileHandle, path: string, signal: AbortSignal): Promise<number> {
  try {
    // Through the descriptor: the name may be another file's by now.
    await copyFile(
      `/proc/self/fd/${source.fd}`,
      path,
      constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE,
    );
    return 0;
  } catch (error) {
    if (!NO_REFLINK.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
  await using target = await open(path, "w", 0o600);
  return await copyPieces(source, target, signal);
}

async function copyPieces(source: FileHandle, target: FileHandle, signal: AbortSignal): Promise<number> {
  const piece = new Uint8Array(PIECE_BYTES);
  let writtenBytes = 0;
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await source.read(piece, 0, PIECE_BYTES, at);
    if (bytesRead === 0) {
      await target.truncate(at);
      return writtenBytes;
    }
    writtenBytes += writeNonZero(target.fd, piece.subarray(0, bytesRead), at);
    at += bytesRead;
  }
}

/** Writes what is not zero of `bytes` at `position`; returns how many bytes that was. */
export function writeNonZero(fd: number, bytes: Uint8Array, position: number): number {
  let writtenBytes = 0;
  let start = 0;
  const flush = (end: number) => {
    writtenBytes += writeAll(fd, bytes.subarray(start, end), position + start);
  };
  for (let at = 0; at < bytes.byteLength; at += HOLE_BYTES) {
    const end = Math.min(at + HOLE_BYTES, bytes.byteLength);
    if (Buffer.compare(bytes.subarray(at, end), ZEROS.subarray(0, end - at)) !== 0) continue;
    flush(at);
    start = end;
  }
  flush(bytes.byteLength);
  return writtenBytes;
}

export function writeAll(fd: number, bytes: Uint8Array, position: number): number {
  for (let at = 0; at < bytes.byteLength; ) {
    at += writeSync(fd, bytes, at, bytes.byteLength - at, position + at);
  }
  return bytes.byteLength;
}
