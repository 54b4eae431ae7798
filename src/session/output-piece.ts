import { AgentError } from "../guest/agent-error.ts";
import { decodeUtf8, wholeCharactersEnd } from "../guest/utf8-text.ts";

export const LONGEST_CHARACTER_BYTES = 4;

/** Where the bytes of one stream of a run are. */
export interface OutputSource {
  /** The stream's first bytes */
  head: Uint8Array;
  /** Its last bytes; empty until the run has ended */
  tail: Uint8Array;
  totalBytes: number;
  /** File in the guest that begins with the stream's first byte; null when there is none */
  path: string | null;
  hasEnded: boolean;
}

/** Bytes of a file in the guest from `offset` on: none behind its end. Rejects when the file cannot be read. */
export type ReadGuestFile = (path: string, offset: number, limitBytes: number) => Promise<Uint8Array>;

export interface OutputPiece {
  text: string;
  hasReplacements: boolean;
  nextOffset: number;
}

/**
 * What a stream has from `offset` on, of at most `limitBytes`, cut between characters. Bytes that are kept nowhere
 * are counted in a line of their own and passed over.
 */
export async function readOutputPiece(
  source: OutputSource,
  offset: number,
  limitBytes: number,
  readFile: ReadGuestFile,
): Promise<OutputPiece> {
  if (offset >= source.totalBytes) return { text: "", hasReplacements: false, nextOffset: offset };
  const bytes = await bytesFrom(source, offset, limitBytes, readFile);
  if (bytes.byteLength === 0) return passOver(source, offset);
  const endOffset = offset + bytes.byteLength;
  const isLast = source.hasEnded && endOffset >= source.totalBytes;
  const whole = isLast ? bytes : bytes.subarray(0, wholeCharactersEnd(bytes));
  // A split character whose rest was not kept would hold up the reader for ever.
  const shown = whole.byteLength === 0 && endOffset < source.totalBytes ? bytes : whole;
  return { ...decodeUtf8(shown), nextOffset: offset + shown.byteLength };
}

async function bytesFrom(
  { head, tail, totalBytes, path }: OutputSource,
  offset: number,
  limitBytes: number,
  readFile: ReadGuestFile,
): Promise<Uint8Array> {
  const inHead = head.subarray(offset, offset + limitBytes);
  // The last character of the head may go on in the file.
  const mayBeSplit = head.byteLength - offset < LONGEST_CHARACTER_BYTES && head.byteLength < totalBytes;
  if (inHead.byteLength > 0 && !mayBeSplit) return inHead;
  const tailOffset = offset - (totalBytes - tail.byteLength);
  if (tailOffset >= 0 && tail.byteLength > 0) return tail.subarray(tailOffset, tailOffset + limitBytes);
  const inFile = path === null ? inHead : await bytesOfFile(path, offset, totalBytes, limitBytes, readFile);
  return inFile.byteLength > 0 ? inFile : inHead;
}

async function bytesOfFile(
  path: string,
  offset: number,
  totalBytes: number,
  limitBytes: number,
  readFile: ReadGuestFile,
): Promise<Uint8Array> {
  try {
    return await readFile(path, offset, Math.min(limitBytes, totalBytes - offset));
  } catch (error) {
    // The agent makes room by removing files of older runs, and anything in the guest may do so too.
    if (error instanceof AgentError && error.code === "agent_refused") return new Uint8Array(0);
    throw error;
  }
}

function passOver({ totalBytes, tail }: OutputSource, offset: number): OutputPiece {
  const nextOffset = totalBytes - tail.byteLength;
  const text = `\n[... ${nextOffset - offset} bytes were not kept for want of room in the session ...]\n`;
  return { text, hasReplacements: false, nextOffset };
}
