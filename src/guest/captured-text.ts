import type { CapturedStream } from "./run-command.ts";

const CONTINUATION_MASK = 0xc0;
const CONTINUATION = 0x80;
const LONGEST_SEQUENCE_BYTES = 4;

/**
 * A captured stream as text. Bytes that are not UTF-8 become U+FFFD. When the middle is missing, the cut falls between
 * characters and one line in its place says how much is gone and where the whole is.
 */
export function capturedText({ head, tail, totalBytes, path, isPathWhole }: CapturedStream): string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  if (!isCut({ head, tail, totalBytes })) return decoder.decode(Buffer.concat([head, tail]));
  const start = head.subarray(0, wholeCharactersEnd(head));
  const end = tail.subarray(firstCharacterStart(tail));
  const omittedBytes = totalBytes - start.byteLength - end.byteLength;
  const where = path === null ? "" : isPathWhole ? `; all of it is in ${path}` : `; its start is in ${path}`;
  return `${decoder.decode(start)}\n[... ${omittedBytes} bytes omitted${where} ...]\n${new TextDecoder("utf-8", { ignoreBOM: true }).decode(end)}`;
}

/** Whether head and tail are less than the stream had. */
export function isCut({
  head,
  tail,
  totalBytes,
}: Pick<CapturedStream, "head" | "tail" | "totalBytes">): boolean {
  return head.byteLength + tail.byteLength < totalBytes;
}

function isContinuation(byte: number): boolean {
  return (byte & CONTINUATION_MASK) === CONTINUATION;
}

function sequenceBytes(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

/** Where to cut so that no character is split at the end. */
function wholeCharactersEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(LONGEST_SEQUENCE_BYTES, bytes.byteLength); back++) {
    const byte = bytes[bytes.byteLength - back]!;
    if (isContinuation(byte)) continue;
    return sequenceBytes(byte) > back ? bytes.byteLength - back : bytes.byteLength;
  }
  return bytes.byteLength;
}

/** Where the first whole character starts when the bytes may begin inside one. */
function firstCharacterStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < Math.min(LONGEST_SEQUENCE_BYTES - 1, bytes.byteLength) && isContinuation(bytes[start]!))
    start++;
  return start;
}
