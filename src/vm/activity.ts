/** Counts calls in flight, so that work nobody waits for can wait for a quiet moment. */
export class Activity {
  #calls = 0;
  readonly #watchers = new Set<(isBusy: boolean) => void>();

  /** Counts one call until what it returns is disposed of. */
  begin(): Disposable {
    this.#calls++;
    if (this.#calls === 1) this.#tell();
    return {
      [Symbol.dispose]: () => {
        this.#calls--;
        if (this.#calls === 0) this.#tell();
      },
    };
  }

  /** Calls back at once and at every change, with whether calls are in flight, until it is disposed of. */
  watch(onChange: (isBusy: boolean) => void): Disposable {
    this.#watchers.add(onChange);
    onChange(this.#calls > 0);
    return { [Symbol.dispose]: () => void this.#watchers.delete(onChange) };
  }

  /** Resolves at once when nothing is in flight, else when nothing is any more, but after `longestMs` in any case. */
  async quiet(longestMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => reject(signal.reason);
    using _watch = this.watch((isBusy) => {
      if (!isBusy) resolve();
    });
    const timer = setTimeout(resolve, longestMs);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher(this.#calls > 0);
  }
}
