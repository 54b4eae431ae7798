/** Bytes that come in pieces of any size, taken in pieces of a wanted size. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Exactly `count` bytes, or fewer where the source ends. */
  async take(count: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(count);
    let at = 0;
    while (at < count) {
      const piece = await this.some(count - at);
      if (piece.byteLength === 0) return bytes.subarray(0, at);
      bytes.set(piece, at);
      at += piece.byteLength;
    }
    return bytes;
  }

  /** At least one and at most `limit` bytes as they come; none at the end. */
  async some(limit: number): Promise<Uint8Array> {
    while (this.#rest.byteLength === 0) {
      const { done, value } = await this.#pieces.next();
      if (done) return this.#rest;
      this.#rest = value;
    }
    const piece = this.#rest.subarray(0, limit);
    this.#rest = this.#rest.subarray(piece.byteLength);
    return piece;
  }
}
