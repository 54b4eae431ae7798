import { HEADER_BYTES, writeHeader } from "./frame-codec.ts";

/** Payloads up to this size are copied into the batch; larger ones are written from where they are */
const COPIED_PAYLOAD_BYTES = 16_384;
const BATCH_BYTES = 65_536;

/**
 * Gathers small frames of one tick so that they leave in one write.
 * `write` must have copied or sent both arguments when it returns: the batch reuses its buffer, the caller its payload.
 */
export class SendBatch {
  readonly #write: (batch: Uint8Array, payload: Uint8Array | null) => void;
  readonly #bytes = new Uint8Array(BATCH_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  #used = 0;
  #isScheduled = false;

  constructor(write: (batch: Uint8Array, payload: Uint8Array | null) => void) {
    this.#write = write;
  }

  /** Bytes gathered and not yet written */
  get usedBytes(): number {
    return this.#used;
  }

  add(type: number, stream: number, payload: Uint8Array): void {
    const isCopied = payload.byteLength <= COPIED_PAYLOAD_BYTES;
    const neededBytes = HEADER_BYTES + (isCopied ? payload.byteLength : 0);
    if (this.#used + neededBytes > BATCH_BYTES) this.flush();
    writeHeader(this.#view, this.#used, type, stream, payload.byteLength);
    this.#used += HEADER_BYTES;
    if (isCopied) {
      this.#bytes.set(payload, this.#used);
      this.#used += payload.byteLength;
      this.#schedule();
    } else {
      this.#flushWith(payload);
    }
  }

  flush(): void {
    if (this.#used > 0) this.#flushWith(null);
  }

  discard(): void {
    this.#used = 0;
  }

  #flushWith(payload: Uint8Array | null): void {
    const batch = this.#bytes.subarray(0, this.#used);
    this.#used = 0;
    this.#write(batch, payload);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.flush();
    });
  }
}
