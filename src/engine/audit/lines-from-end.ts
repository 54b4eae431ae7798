import type { FileHandle } from "node:fs/promises";

const NEW_LINE = 0x0a;
const BLOCK_BYTES = 262_144;

/** A line with its end, and where in the file it is. */
export interface PlacedLine {
  text: string;
  start: number;
  end: number;
}

/** The lines of a file's first `bytes`, the last ones first, one block of it after another. */
export async function* linesFromEnd(file: FileHandle, bytes: number): AsyncGenerator<PlacedLine[]> {
  /** From `at` to where a line begins that was told: the end of one that begins further in front */
  let rest = Buffer.alloc(0);
  for (let at = bytes; at > 0; ) {
    const count = Math.min(BLOCK_BYTES, at);
    at -= count;
    const known = Buffer.concat([await readWhole(file, at, count), rest]);
    const begin = at === 0 ? 0 : known.indexOf(NEW_LINE) + 1;
    rest = known.subarray(0, at === 0 || begin > 0 ? begin : known.byteLength);
    yield linesIn(known.subarray(rest.byteLength), at + rest.byteLength);
  }
}

function linesIn(bytes: Buffer, at: number): PlacedLine[] {
  const lines: PlacedLine[] = [];
  for (let end = bytes.byteLength; end > 0; ) {
    const start = end === 1 ? 0 : bytes.lastIndexOf(NEW_LINE, end - 2) + 1;
    lines.push({ text: bytes.toString("utf8", start, end), start: at + start, end: at + end });
    end = start;
  }
  return lines;
}

async function readWhole(file: FileHandle, position: number, count: number): Promise<Buffer> {
  const bytes = Buffer.alloc(count);
  for (let at = 0; at < count; ) {
    const { bytesRead } = await file.read(bytes, at, count - at, position + at);
    if (bytesRead === 0) throw new Error(`a file of lines ends at ${position + at}, within what it had`);
    at += bytesRead;
  }
  return bytes;
}
