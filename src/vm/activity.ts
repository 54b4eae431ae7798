/** Counts calls in flight, so that work nobody waits for can wait for a quiet moment. */
export class Activity {
  #calls = 0;
  readonly #waiting = new Set<() => void>();

  /** Counts one call until what it returns is disposed of. */
  begin(): Disposable {
    this.#calls++;
    return {
      [Symbol.dispose]: () => {
        this.#calls--;
        if (this.#calls === 0) for (const wake of this.#waiting) wake();
      },
    };
  }

  /** Resolves at once when nothing is in flight, else when nothing is any more, but after `longestMs` in any case. */
  async quiet(longestMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#calls === 0) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(signal.reason);
    const timer = setTimeout(resolve, longestMs);
    this.#waiting.add(resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(resolve);
      signal.removeEventListener("abort", onAbort);
    }
  }
}
