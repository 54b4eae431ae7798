/** Lets a number of things happen at once; others wait for their turn, in the order in which they came. */
export class AtMost {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Rejects with the signal's reason when that comes before its turn. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      this.#waiting.delete(resolve);
      reject(signal.reason);
    };
    this.#waiting.add(resolve);
    signal.addEventListener("abort", giveUp, { once: true });
    await promise;
    signal.removeEventListener("abort", giveUp);
  }

  #next(): void {
    const [first] = this.#waiting;
    if (!first) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(first);
    first();
  }
}

/** Does `work` for each item, of which `limit` are under way at once. Rejects with the first failure, and begins no more then. */
export async function atMost<T>(
  limit: number,
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const turns = new AtMost(limit);
  const failed = new AbortController();
  const unlessOneFailed = async (item: T) => {
    try {
      await work(item);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  await Promise.all(Array.from(items, (item) => turns.run(() => unlessOneFailed(item), failed.signal)));
}
