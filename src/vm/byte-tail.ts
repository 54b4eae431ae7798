/** Keeps the last bytes of a stream, and lets a caller wait for a text in it. */
export class ByteTail {
  readonly #limitBytes: number;
  readonly #watchers = new Set<() => void>();
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  push(bytes: Uint8Array): void {
    const joined = Buffer.concat([this.#bytes, bytes]);
    this.#bytes =
      joined.byteLength > this.#limitBytes ? joined.subarray(joined.byteLength - this.#limitBytes) : joined;
    for (const check of this.#watchers) check();
  }

  /** Latin-1, so that every byte is one character. */
  text(): string {
    return Buffer.from(this.#bytes).toString("latin1");
  }

  /** Resolves once the text has been seen within the kept tail. The caller bounds the wait. */
  seen(text: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => {
      if (!this.text().includes(text)) return;
      finish();
      resolve();
    };
    const onAbort = () => {
      finish();
      reject(signal.reason);
    };
    const finish = () => {
      this.#watchers.delete(check);
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) return Promise.reject(signal.reason);
    this.#watchers.add(check);
    signal.addEventListener("abort", onAbort, { once: true });
    check();
    return promise;
  }
}
