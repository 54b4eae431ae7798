import { type FileHandle, open } from "node:fs/promises";
import type { FileRange } from "../../vm/capture-machine.ts";
import { copySparsely, writeAll } from "../../vm/sparse-copy.ts";
import {
  DIFF_HEADER_BYTES,
  DiffFormatError,
  type DiffIndex,
  decodeDiffIndex,
  encodeDiffIndex,
  indexBytes,
  indexBytesOf,
} from "./diff-index.ts";

const PIECE_BYTES = 1_048_576;

/** A parent's whole memory, and who it is. */
export interface ParentMemory {
  file: FileHandle;
  memoryBytes: number;
  sha256: string;
}

/**
 * Writes those pages of `ranges` to a new file that differ from the parent's. Outside of `ranges` nothing may differ.
 * Resolves with how many there were. The file is not synced.
 */
export async function writeMemoryDiff(
  parent: ParentMemory,
  changed: FileHandle,
  ranges: FileRange[],
  pageBytes: number,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  const pages = new Uint32Array(await differingPages(parent.file, changed, ranges, pageBytes, signal));
  const { memoryBytes, sha256: parentSha256 } = parent;
  await using target = await open(path, "wx", 0o600);
  let at = writeAll(target.fd, encodeDiffIndex({ pageBytes, memoryBytes, parentSha256, pages }), 0);
  for (const { offset, bytes } of runsOf(pages, pageBytes)) {
    signal.throwIfAborted();
    at += writeAll(target.fd, await readPiece(changed, offset, bytes), at);
  }
  return pages.length;
}

/** Reads the index of a diff and checks that the file is one. Throws `DiffFormatError`. */
export async function readDiffIndex(file: FileHandle): Promise<DiffIndex> {
  const { size } = await file.stat();
  const header = await readPiece(file, 0, Math.min(size, DIFF_HEADER_BYTES));
  return decodeDiffIndex(await readPiece(file, 0, indexBytesOf(header, size)), size);
}

/** Writes a new file that is the parent's memory with the pages of a diff over it. Throws `DiffFormatError`. */
export async function applyMemoryDiff(
  parent: ParentMemory,
  diff: FileHandle,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const { pageBytes, memoryBytes, parentSha256, pages } = await readDiffIndex(diff);
  if (parentSha256 !== parent.sha256 || memoryBytes !== parent.memoryBytes)
    throw new DiffFormatError("is of another parent");
  await copySparsely(parent.file, path, signal);
  await using target = await open(path, "r+");
  let at = indexBytes(pages.length, pageBytes);
  for (const { offset, bytes } of runsOf(pages, pageBytes)) {
    signal.throwIfAborted();
    writeAll(target.fd, await readPiece(diff, at, bytes), offset);
    at += bytes;
  }
}

async function differingPages(
  parent: FileHandle,
  changed: FileHandle,
  ranges: FileRange[],
  pageBytes: number,
  signal: AbortSignal,
): Promise<number[]> {
  const pages: number[] = [];
  for (const { offset, bytes } of ranges.toSorted((a, b) => a.offset - b.offset)) {
    for (let at = offset; at < offset + bytes; at += PIECE_BYTES) {
      signal.throwIfAborted();
      const count = Math.min(PIECE_BYTES, offset + bytes - at);
      const [before, after] = await Promise.all([
        readPiece(parent, at, count),
        readPiece(changed, at, count),
      ]);
      for (let page = 0; page < count; page += pageBytes) {
        const end = page + pageBytes;
        if (Buffer.compare(before.subarray(page, end), after.subarray(page, end)) !== 0)
          pages.push((at + page) / pageBytes);
      }
    }
  }
  return pages;
}

/** Pages that follow one another, joined up to a piece each. */
function* runsOf(pages: Uint32Array, pageBytes: number): Generator<FileRange> {
  let run: FileRange | null = null;
  for (const page of pages) {
    const offset = page * pageBytes;
    if (run && run.offset + run.bytes === offset && run.bytes < PIECE_BYTES) {
      run.bytes += pageBytes;
      continue;
    }
    if (run) yield run;
    run = { offset, bytes: pageBytes };
  }
  if (run) yield run;
}

async function readPiece(file: FileHandle, position: number, count: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; ) {
    const { bytesRead } = await file.read(bytes, at, count - at, position + at);
    if (bytesRead === 0) throw new DiffFormatError(`ends at ${position + at}`);
    at += bytesRead;
  }
  return bytes;
}
