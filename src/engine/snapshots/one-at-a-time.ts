/** Does one thing after another, in the order they were asked for. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();

  /** Rejects with the signal's reason when that comes before its turn. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const turn = this.#last.then(() => {
      signal.throwIfAborted();
      return work();
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when nothing is under way and nothing waits. */
  async idle(): Promise<void> {
    for (let seen: unknown = null; seen !== this.#last; ) {
      seen = this.#last;
      await this.#last;
    }
  }
}
