/** Aborts its signal with the sentence when the time is over, unless it is disposed before. */
export class Deadline implements Disposable {
  readonly signal: AbortSignal;
  readonly #timer: Timer;

  constructor(limitMs: number, sentence: string) {
    const end = new AbortController();
    this.signal = end.signal;
    this.#timer = setTimeout(() => end.abort(new Error(sentence)), limitMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
