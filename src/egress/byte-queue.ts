const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Bytes that were read ahead of a parser. Pieces are joined at a cost that stays in proportion to their bytes, however
 * small they are, and what was taken is never written over.
 */
export class ByteQueue {
  #store = NOTHING;
  #start = 0;
  #end = 0;
  /** Whether the store is ours to append to */
  #isOwn = false;

  get bytes(): Uint8Array {
    return this.#store.subarray(this.#start, this.#end);
  }

  add(piece: Uint8Array): void {
    const count = this.#end - this.#start;
    if (count === 0) {
      this.#hold(piece);
      return;
    }
    if (!this.#isOwn || this.#end + piece.byteLength > this.#store.byteLength)
      this.#move(count + piece.byteLength);
    this.#store.set(piece, this.#end);
    this.#end += piece.byteLength;
  }

  /** The first bytes, as many as asked for if there are so many. */
  take(count: number): Uint8Array {
    const taken = this.#store.subarray(this.#start, Math.min(this.#start + count, this.#end));
    this.#start += taken.byteLength;
    return taken;
  }

  clear(): void {
    this.#hold(NOTHING);
  }

  #hold(piece: Uint8Array): void {
    this.#store = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    this.#start = 0;
    this.#end = piece.byteLength;
    this.#isOwn = false;
  }

  #move(neededBytes: number): void {
    const larger = Buffer.allocUnsafe(2 * neededBytes);
    const count = this.#store.copy(larger, 0, this.#start, this.#end);
    this.#store = larger;
    this.#start = 0;
    this.#end = count;
    this.#isOwn = true;
  }
}
