import { type CapturedStream, isCut } from "./output-capture.ts";
import { type DecodedText, decodeUtf8, firstCharacterStart, wholeCharactersEnd } from "./utf8-text.ts";

/**
 * A captured stream as text. Bytes that are not UTF-8 become U+FFFD. When the middle is missing, the cut falls between
 * characters and one line in its place says how much is gone and where the whole is.
 */
export function capturedText(stream: CapturedStream): DecodedText {
  const { head, tail, totalBytes } = stream;
  if (!isCut(stream)) return decodeUtf8(tail.byteLength === 0 ? head : Buffer.concat([head, tail]));
  const start = head.subarray(0, wholeCharactersEnd(head));
  const end = tail.subarray(firstCharacterStart(tail));
  const omittedBytes = totalBytes - start.byteLength - end.byteLength;
  const [before, after] = [decodeUtf8(start), decodeUtf8(end)];
  return {
    text: `${before.text}\n[... ${omittedBytes} bytes omitted${whereabouts(stream)} ...]\n${after.text}`,
    hasReplacements: before.hasReplacements || after.hasReplacements,
  };
}

function whereabouts({ path, isPathWhole }: CapturedStream): string {
  if (path === null) return "";
  return isPathWhole ? `; all of it is in ${path}` : `; its start is in ${path}`;
}
