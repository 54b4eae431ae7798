import { ByteSource } from "./byte-source.ts";
import { BLOCK_BYTES, decodeHeader, paddingOf, type UstarEntry, UstarError } from "./ustar.ts";

const PIECE_BYTES = 1_048_576;
/** Archivers fill up the last record of 20 blocks */
const MAX_TRAILER_BYTES = 20 * BLOCK_BYTES;

/** Reads an archive from beginning to end. Each entry's content is taken whole before the next. Throws `UstarError`. */
export class TarReader {
  readonly #source: ByteSource;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#source = new ByteSource(pieces);
  }

  /** The next entry's header; null at the end of the archive. */
  async next(): Promise<UstarEntry | null> {
    return decodeHeader(await this.#source.take(BLOCK_BYTES));
  }

  /** What an entry holds, in pieces that are valid until the next is asked for. */
  async *content({ name, bytes }: UstarEntry): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0; ) {
      const piece = await this.#source.some(Math.min(left, PIECE_BYTES));
      if (piece.byteLength === 0) throw new UstarError(`ends in ${name}`);
      left -= piece.byteLength;
      yield piece;
    }
    const padding = await this.#source.take(paddingOf(bytes));
    if (padding.byteLength !== paddingOf(bytes)) throw new UstarError(`ends behind ${name}`);
    if (!isZero(padding)) throw new UstarError(`has something behind ${name}`);
  }

  /** Checks that nothing follows the first block of zeros but at least one more. */
  async end(): Promise<void> {
    const trailer = await this.#source.take(MAX_TRAILER_BYTES);
    if (trailer.byteLength < BLOCK_BYTES || trailer.byteLength % BLOCK_BYTES !== 0)
      throw new UstarError("ends early");
    if (trailer.byteLength === MAX_TRAILER_BYTES || !isZero(trailer))
      throw new UstarError("has something behind its end");
  }
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}
