import type { Rng } from "../support/rng.ts";

const MAX_BYTES = 8192;
const EDGES = [0, 1, 4, 5, 0x7f, 0x80, 0xff];

/** A new input: one of the corpus, changed in a few places. */
export function mutate(corpus: Uint8Array[], words: readonly string[], rng: Rng): Uint8Array {
  if (rng.oneIn(50)) return rng.bytes(rng.below(300));
  let bytes: Buffer = Buffer.from(rng.pick(corpus));
  for (let changes = 1 + rng.below(6); changes > 0; changes--)
    bytes = rng.pick(CHANGES)(bytes, rng, corpus, words);
  return new Uint8Array(bytes.subarray(0, MAX_BYTES));
}

type Change = (bytes: Buffer, rng: Rng, corpus: Uint8Array[], words: readonly string[]) => Buffer;

const CHANGES: Change[] = [
  function flipBit(bytes, rng) {
    if (bytes.byteLength > 0) bytes[rng.below(bytes.byteLength)]! ^= 1 << rng.below(8);
    return bytes;
  },
  function setByte(bytes, rng) {
    if (bytes.byteLength > 0)
      bytes[rng.below(bytes.byteLength)] = rng.oneIn(2) ? rng.pick(EDGES) : rng.below(256);
    return bytes;
  },
  function setLength(bytes, rng) {
    if (bytes.byteLength >= 4)
      bytes.writeUInt32LE(rng.oneIn(2) ? rng.below(64) : rng.next(), rng.below(bytes.byteLength - 3));
    return bytes;
  },
  function cutOut(bytes, rng) {
    const [from, to] = range(bytes, rng);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  function cutOff(bytes, rng) {
    return bytes.subarray(0, rng.below(bytes.byteLength + 1));
  },
  function repeatPart(bytes, rng) {
    const [from, to] = range(bytes, rng);
    const part = Array.from({ length: 1 + rng.below(20) }, () => bytes.subarray(from, to));
    return Buffer.concat([bytes.subarray(0, to), ...part, bytes.subarray(to)]).subarray(0, MAX_BYTES);
  },
  function putIn(bytes, rng, _corpus, words) {
    const at = rng.below(bytes.byteLength + 1);
    const more = words.length > 0 && rng.oneIn(2) ? Buffer.from(rng.pick(words)) : rng.bytes(rng.below(12));
    return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
  },
  function putInstead(bytes, rng, _corpus, words) {
    const [from, to] = range(bytes, rng);
    const word = Buffer.from(words.length > 0 ? rng.pick(words) : "");
    return Buffer.concat([bytes.subarray(0, from), word, bytes.subarray(to)]);
  },
  function crossOver(bytes, rng, corpus) {
    const other = rng.pick(corpus);
    const [at, from] = [rng.below(bytes.byteLength + 1), rng.below(other.byteLength + 1)];
    return Buffer.concat([bytes.subarray(0, at), other.subarray(from)]);
  },
];

function range(bytes: Buffer, rng: Rng): [from: number, to: number] {
  const from = rng.below(bytes.byteLength + 1);
  return [from, from + rng.below(Math.min(64, bytes.byteLength - from) + 1)];
}

/** The same bytes in pieces, as a socket may bring them. */
export function split(bytes: Uint8Array, rng: Rng): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const size = rng.oneIn(3) ? 1 : 1 + rng.below(bytes.byteLength - at);
    pieces.push(bytes.slice(at, at + size));
    at += size;
  }
  return pieces;
}
