/**
 * Joins payloads into one piece of memory. It copies: a payload is a view of whatever the socket brought with it,
 * and many small ones would keep all of that alive.
 */
export class ByteCollector {
  #bytes = new Uint8Array(0);
  #used = 0;

  get byteLength(): number {
    return this.#used;
  }

  add(payload: Uint8Array): void {
    const needed = this.#used + payload.byteLength;
    if (needed > this.#bytes.byteLength) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.byteLength));
      grown.set(this.#bytes.subarray(0, this.#used));
      this.#bytes = grown;
    }
    this.#bytes.set(payload, this.#used);
    this.#used = needed;
  }

  /** All bytes so far, not copied again. */
  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#used);
  }
}
