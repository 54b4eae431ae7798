const CONTINUATION_MASK = 0xc0;
const CONTINUATION = 0x80;
const LONGEST_SEQUENCE_BYTES = 4;

export interface DecodedText {
  text: string;
  /** Whether bytes that are not UTF-8 were replaced by U+FFFD */
  hasReplacements: boolean;
}

/** Keeps a byte order mark: it is part of what was printed. */
export function decodeUtf8(bytes: Uint8Array): DecodedText {
  try {
    return {
      text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
      hasReplacements: false,
    };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), hasReplacements: true };
  }
}

/** Where to cut so that no character is split at the end. */
export function wholeCharactersEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(LONGEST_SEQUENCE_BYTES, bytes.byteLength); back++) {
    const byte = bytes[bytes.byteLength - back]!;
    if (isContinuation(byte)) continue;
    return sequenceBytes(byte) > back ? bytes.byteLength - back : bytes.byteLength;
  }
  return bytes.byteLength;
}

/** Where the first whole character starts when the bytes may begin inside one. */
export function firstCharacterStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < Math.min(LONGEST_SEQUENCE_BYTES - 1, bytes.byteLength) && isContinuation(bytes[start]!))
    start++;
  return start;
}

function isContinuation(byte: number): boolean {
  return (byte & CONTINUATION_MASK) === CONTINUATION;
}

function sequenceBytes(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}
