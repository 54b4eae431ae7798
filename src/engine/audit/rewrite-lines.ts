import { fstatSync, fsyncSync, readSync, renameSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { writeAll } from "../../vm/sparse-copy.ts";
import { linesFromEnd } from "./lines-from-end.ts";

const PIECE_BYTES = 262_144;

interface Stretch {
  start: number;
  end: number;
}

/**
 * Replaces a file by one that has only those of its lines that `isKept`, which is asked of the last first, and whatever is
 * appended while that is found out. `onReplaced` is called at the moment from which on the path leads to the new file.
 */
export async function rewriteLines(
  path: string,
  isKept: (line: string) => boolean,
  onReplaced: () => void,
): Promise<void> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const kept = await keptStretches(file, size, isKept);
  const temporaryPath = `${path}.tmp-${crypto.randomUUID()}`;
  try {
    await using target = await open(temporaryPath, "wx", 0o600);
    let at = 0;
    for (const stretch of kept) at = await copyStretch(file, stretch, target, at);
    await target.sync();
    // From here on nothing is awaited, so nothing is appended: this is the last of it, and little.
    copyRest(file, size, target, at);
    renameSync(temporaryPath, path);
    onReplaced();
  } catch (error) {
    await rm(temporaryPath, { force: true });
    throw error;
  }
}

/** Lines that follow one another are one stretch. The first of the file first. */
async function keptStretches(
  file: FileHandle,
  bytes: number,
  isKept: (line: string) => boolean,
): Promise<Stretch[]> {
  const stretches: Stretch[] = [];
  for await (const lines of linesFromEnd(file, bytes)) {
    for (const { text, start, end } of lines) {
      if (!isKept(text)) continue;
      const next = stretches.at(-1);
      if (next?.start === end) next.start = start;
      else stretches.push({ start, end });
    }
  }
  return stretches.reverse();
}

/** Resolves with where the target ends now. */
async function copyStretch(
  file: FileHandle,
  { start, end }: Stretch,
  target: FileHandle,
  at: number,
): Promise<number> {
  const piece = new Uint8Array(Math.min(PIECE_BYTES, end - start));
  for (let from = start; from < end; ) {
    const { bytesRead } = await file.read(piece, 0, Math.min(piece.byteLength, end - from), from);
    if (bytesRead === 0) throw new Error(`a file of lines ends at ${from}, within what it had`);
    writeAll(target.fd, piece.subarray(0, bytesRead), at + from - start);
    from += bytesRead;
  }
  return at + end - start;
}

function copyRest(file: FileHandle, from: number, target: FileHandle, at: number): void {
  const rest = new Uint8Array(fstatSync(file.fd).size - from);
  if (rest.byteLength === 0) return;
  const count = readSync(file.fd, rest, 0, rest.byteLength, from);
  writeAll(target.fd, rest.subarray(0, count), at);
  fsyncSync(target.fd);
}
