import { decodeUtf8, wholeCharactersEnd } from "../guest/utf8-text.ts";
import { SessionError } from "./session-error.ts";
import type { SessionVm } from "./vm-source.ts";

const CHUNK_BYTES = 1_048_576;
/** Lines are counted from the file's start, up to here */
const MAX_SCAN_BYTES = 67_108_864;
const NEWLINE = 0x0a;

export interface FileRange {
  encoding: "text" | "base64";
  /** 1 byte to 1 MiB */
  maxBytes: number;
  /** Where to start, in `bytes`; not with lines */
  offset: number;
  /** First and last line, from 1 on; null for bytes */
  lines: { first: number; last: number | null } | null;
}

export interface FileExcerpt {
  content: string;
  /** Bytes that are not UTF-8 became U+FFFD in the text */
  hasReplacements: boolean;
  /** Where the content is in the file, in `bytes` */
  offset: number;
  bytes: number;
  /** Size of the whole file; 0 for those the kernel makes up, as in /proc */
  fileBytes: number;
  /** What follows the content up to the end of the file, in `bytes` */
  leftBytes: number;
}

/** A part of a file, cut between characters when it is text. Rejects `bad_range` when there is no such part. */
export async function readFile(
  vm: SessionVm,
  path: string,
  range: FileRange,
  signal: AbortSignal,
): Promise<FileExcerpt> {
  const read = async (offset: number, bytes: number) =>
    await vm.getFile(path, { offset, bytes, limitBytes: bytes }, signal);
  const { start, end } = range.lines
    ? await findLines(path, range.lines, range.maxBytes, read)
    : { start: range.offset, end: range.offset + range.maxBytes };
  const { content, fileBytes } = await read(start, Math.min(end - start, range.maxBytes));
  if (start > fileBytes && content.byteLength === 0)
    throw new SessionError("bad_range", `'${path}' has ${fileBytes} bytes, and none from ${start} on.`);
  const leftBytes = Math.max(0, fileBytes - start - content.byteLength);
  if (range.encoding === "base64") {
    const text = Buffer.from(content).toString("base64");
    const bytes = content.byteLength;
    return { content: text, hasReplacements: false, offset: start, bytes, fileBytes, leftBytes };
  }
  const shown = leftBytes > 0 ? withoutSplitCharacter(content) : content;
  const { text, hasReplacements } = decodeUtf8(shown);
  const bytes = shown.byteLength;
  const heldBackBytes = content.byteLength - bytes;
  return {
    content: text,
    hasReplacements,
    offset: start,
    bytes,
    fileBytes,
    leftBytes: leftBytes + heldBackBytes,
  };
}

/** A limit below one character's size must not stop a reader for ever. */
function withoutSplitCharacter(content: Uint8Array): Uint8Array {
  const end = wholeCharactersEnd(content);
  return end === 0 ? content : content.subarray(0, end);
}

/** Where the lines are, in `bytes`; looks no further than the answer may reach. */
async function findLines(
  path: string,
  { first, last }: { first: number; last: number | null },
  maxBytes: number,
  read: (offset: number, bytes: number) => Promise<{ content: Uint8Array }>,
): Promise<{ start: number; end: number }> {
  let line = 1;
  let start: number | null = first === 1 ? 0 : null;
  let endsInNewline = true;
  for (let offset = 0; ; ) {
    if (offset >= MAX_SCAN_BYTES) throw tooFar(path, first);
    const { content } = await read(offset, CHUNK_BYTES);
    for (let at = content.indexOf(NEWLINE); at >= 0; at = content.indexOf(NEWLINE, at + 1)) {
      if (line === last && start !== null) return { start, end: offset + at + 1 };
      line++;
      if (line === first) start = offset + at + 1;
    }
    offset += content.byteLength;
    if (content.byteLength > 0) endsInNewline = content.at(-1) === NEWLINE;
    const hasEnough = last === null || (start !== null && offset - start >= maxBytes);
    if (start !== null && start < offset && hasEnough) return { start, end: start + maxBytes };
    if (content.byteLength < CHUNK_BYTES) {
      const count = endsInNewline ? line - 1 : line;
      if (start === null || first > Math.max(1, count)) throw noSuchLine(path, first, count);
      return { start, end: start + maxBytes };
    }
  }
}

function noSuchLine(path: string, first: number, count: number): SessionError {
  return new SessionError("bad_range", `'${path}' has ${count} lines, and no line ${first}.`);
}

function tooFar(path: string, first: number): SessionError {
  return new SessionError(
    "bad_range",
    `line ${first} of '${path}' is more than ${MAX_SCAN_BYTES} bytes into it. Read it by offset, or use run with sed -n.`,
  );
}
