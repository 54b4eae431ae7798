/** So many of something at once. A place is given back once, by its disposal. */
export class Places {
  readonly #waiting = new Set<(place: Disposable) => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Null when there is none. */
  take(): Disposable | null {
    if (this.#free === 0) return null;
    this.#free--;
    return this.#place();
  }

  /** Waits for one, first come, first served; rejects with the signal's reason. */
  async wait(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const place = this.take() ?? (await this.#turn(signal));
    if (signal.aborted) place[Symbol.dispose]();
    signal.throwIfAborted();
    return place;
  }

  #place(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#passOn();
      },
    };
  }

  #passOn(): void {
    const [first] = this.#waiting;
    if (first) first(this.#place());
    else this.#free++;
  }

  async #turn(signal: AbortSignal): Promise<Disposable> {
    const { promise, resolve, reject } = Promise.withResolvers<Disposable>();
    const giveUp = () => {
      this.#waiting.delete(accept);
      reject(signal.reason);
    };
    const accept = (place: Disposable) => {
      this.#waiting.delete(accept);
      signal.removeEventListener("abort", giveUp);
      resolve(place);
    };
    this.#waiting.add(accept);
    signal.addEventListener("abort", giveUp, { once: true });
    return await promise;
  }
}
