import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "./read-lines.ts";
import { decodeMessage } from "./wall-message.ts";

const NAME = "townwall.log";
const NUMBERED = /^townwall\.log\.([1-9]\d{0,5})$/;
const SCAN_BYTES = 1_048_576;

/** One file of a wall. */
export interface WallPart {
  /** Changes when the file is set aside */
  path: string;
  /** Where it begins, counted over all parts since the wall was opened, in `bytes` */
  start: number;
  /** Up to the end of its last whole line */
  bytes: number;
}

/** What the files of a wall hold. */
export interface FoundWall {
  /** The oldest first */
  parts: WallPart[];
  lastSeq: number;
  /** Behind the last whole line of the newest file */
  tornBytes: number;
  /** Lines that are no messages */
  damagedLines: number;
}

/** Where new messages go. */
export function activePath(dir: string): string {
  return join(dir, NAME);
}

/** Looks through all files of a wall, the oldest first, and changes nothing. */
export function findWall(dir: string): FoundWall {
  const found: FoundWall = { parts: [], lastSeq: 0, tornBytes: 0, damagedLines: 0 };
  let start = 0;
  for (const path of pathsIn(dir)) {
    const bytes = scan(path, found);
    found.parts.push({ path, start, bytes });
    found.tornBytes = statSync(path).size - bytes;
    start += bytes;
  }
  return found;
}

/**
 * Sets the files aside and puts `newPath` in the place of the newest; the oldest goes when more than `keep` would be
 * left. Nothing is awaited, and each name in `parts` is changed with its file: whatever fails, they agree.
 */
export function rotate(dir: string, parts: WallPart[], newPath: string, keep: number): void {
  const active = activePath(dir);
  while (parts.length > Math.max(keep, 1)) rmSync(parts.shift()!.path, { force: true });
  if (keep > 0) {
    for (const [at, part] of parts.entries()) {
      const path = `${active}.${parts.length - at}`;
      renameSync(part.path, path);
      part.path = path;
    }
  }
  renameSync(newPath, active);
  if (keep === 0) parts.length = 0;
}

/** The bytes of its whole lines. A damaged line may have been a message, so it counts as one. */
function scan(path: string, found: FoundWall): number {
  const { size } = statSync(path);
  let offset = 0;
  let wholeBytes = 0;
  for (;;) {
    const { lines, next } = readLines(path, offset, size, SCAN_BYTES);
    for (const { bytes, end } of lines) {
      wholeBytes = end;
      const message = decodeMessage(bytes);
      if (message === null) found.damagedLines++;
      found.lastSeq = Math.max(found.lastSeq + (message === null ? 1 : 0), message?.seq ?? 0);
    }
    if (next === offset) return wholeBytes;
    offset = next;
  }
}

function pathsIn(dir: string): string[] {
  const names = readdirSync(dir);
  const numbers = names.flatMap((name) => NUMBERED.exec(name)?.slice(1, 2).map(Number) ?? []);
  const older = numbers.sort((a, b) => b - a).map((number) => join(dir, `${NAME}.${number}`));
  return names.includes(NAME) ? [...older, join(dir, NAME)] : older;
}
