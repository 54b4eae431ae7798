const NEWLINE = 0x0a;
/** What is kept of each end of a line that is too long, in `bytes` */
export const KEPT_BYTES = 4096;

export type Line =
  | { kind: "line"; bytes: Uint8Array }
  /** Longer than the limit: only its first and last `KEPT_BYTES` are left */
  | { kind: "oversize"; head: Uint8Array; tail: Uint8Array };

/** Cuts a byte stream at newlines. A line's pieces are joined once, and at most the limit is ever held. */
export class LineSplitter {
  readonly #limitBytes: number;
  #pieces: Uint8Array[] = [];
  #sizeBytes = 0;
  /** Set while the rest of a line that is too long is thrown away */
  #discarding: { head: Uint8Array; tail: Uint8Array } | null = null;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The lines that end in this chunk, without their newlines. */
  *push(chunk: Uint8Array): Generator<Line> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      this.#take(chunk.subarray(start, end < 0 ? chunk.length : end));
      if (end < 0) return;
      yield this.#finish();
      start = end + 1;
    }
  }

  #take(piece: Uint8Array): void {
    if (this.#discarding) {
      this.#discarding.tail = lastBytes([this.#discarding.tail, piece]);
    } else {
      this.#pieces.push(piece);
      this.#sizeBytes += piece.length;
      if (this.#sizeBytes > this.#limitBytes) this.#discard();
    }
  }

  #discard(): void {
    this.#discarding = { head: firstBytes(this.#pieces), tail: lastBytes(this.#pieces) };
    this.#pieces = [];
    this.#sizeBytes = 0;
  }

  #finish(): Line {
    const discarded = this.#discarding;
    if (discarded) {
      this.#discarding = null;
      return { kind: "oversize", ...discarded };
    }
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#sizeBytes = 0;
    return { kind: "line", bytes };
  }
}

function firstBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return Buffer.concat(pieces, Math.min(sizeBytes, KEPT_BYTES));
}

/** A copy, so that it does not hold on to the chunk it came from. */
function lastBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const ends: Uint8Array[] = [];
  let missingBytes = KEPT_BYTES;
  for (let index = pieces.length - 1; index >= 0 && missingBytes > 0; index--) {
    const end = pieces[index]!.subarray(-missingBytes);
    ends.unshift(end);
    missingBytes -= end.length;
  }
  return Buffer.concat(ends);
}
