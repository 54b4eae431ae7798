import { closeSync, openSync, readSync } from "node:fs";

const NEW_LINE = 0x0a;
/** Twice the longest line there can be: 1 MiB of text, each byte of which takes at most six of JSON */
const MOST_BYTES = 12 * 1_048_576;

export interface Line {
  bytes: Uint8Array;
  /** Where the next one begins, in `bytes` of the file */
  end: number;
}

/**
 * The whole lines between two offsets, of about `wantedBytes`, at least one when there is one; what has no end is left
 * out. Opened, read and closed without a wait, so that no rename comes between.
 */
export function readLines(
  path: string,
  from: number,
  to: number,
  wantedBytes: number,
): { lines: Line[]; next: number } {
  const fd = openSync(path, "r");
  try {
    for (let size = wantedBytes; ; size *= 2) {
      const bytes = readAt(fd, from, Math.min(size, to - from, MOST_BYTES));
      const lines = split(bytes, from);
      const isAll = bytes.byteLength < size || bytes.byteLength === MOST_BYTES;
      if (lines.length > 0) return { lines, next: lines.at(-1)!.end };
      // Without a line end for so long it is no log; it is passed over in pieces.
      if (isAll) return { lines: [], next: bytes.byteLength === MOST_BYTES ? from + MOST_BYTES : from };
    }
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let count = 0;
  while (count < length) {
    const more = readSync(fd, bytes, count, length - count, from + count);
    if (more === 0) break;
    count += more;
  }
  return bytes.subarray(0, count);
}

function split(bytes: Buffer, from: number): Line[] {
  const lines: Line[] = [];
  let start = 0;
  for (let at = bytes.indexOf(NEW_LINE); at !== -1; at = bytes.indexOf(NEW_LINE, start)) {
    lines.push({ bytes: bytes.subarray(start, at), end: from + at + 1 });
    start = at + 1;
  }
  return lines;
}
