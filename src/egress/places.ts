/** So many of something at once. A place is given back once, by its disposal. */
export class Places {
  readonly #limit: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Null when there is none. */
  take(): Disposable | null {
    if (this.#taken >= this.#limit) return null;
    this.#taken++;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#taken--;
        this.#wakeFirst();
      },
    };
  }

  /** Waits for one, first come, first served; rejects with the signal's reason. */
  async wait(signal: AbortSignal): Promise<Disposable> {
    while (!signal.aborted) {
      const place = this.take();
      if (place) return place;
      await this.#change(signal);
    }
    // It may have been woken for a place that another one can have.
    this.#wakeFirst();
    throw signal.reason;
  }

  #wakeFirst(): void {
    const [first] = this.#waiting;
    first?.();
  }

  /** Settles when a place is free, or when the signal aborts. */
  async #change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const go = () => {
      this.#waiting.delete(go);
      signal.removeEventListener("abort", go);
      resolve();
    };
    this.#waiting.add(go);
    signal.addEventListener("abort", go, { once: true });
    await promise;
  }
}
