const INTERVAL_MS = 1000;

export interface ProgressUpdate {
  /** Strictly increasing */
  progress: number;
  message: string;
}

/**
 * Tells once a second what a call is doing, also while nothing changes: clients that wait for progress then know that
 * the call is alive. The first news is told at once. Nothing follows the disposal.
 */
export class ProgressReporter implements Disposable {
  readonly #send: (update: ProgressUpdate) => void;
  readonly #startedMs = performance.now();
  readonly #timer: Timer;
  #state: string;
  /** What the guest printed last, told as it is; null while our own state says more */
  #line: string | null = null;
  #count = 0;

  /** `label` is the state until another is reported. */
  constructor(label: string, send: (update: ProgressUpdate) => void) {
    this.#state = label;
    this.#send = send;
    this.#timer = setInterval(() => this.#emit(this.#line ?? this.#withDuration()), INTERVAL_MS);
  }

  report(state: string): void {
    this.#state = state;
    this.#line = null;
    if (this.#count === 0) this.#emit(state);
  }

  /** Guest text stands alone: it never becomes a part of our own sentences. */
  quote(line: string): void {
    this.#line = line;
    if (this.#count === 0) this.#emit(line);
  }

  #withDuration(): string {
    return `${this.#state} (${Math.round((performance.now() - this.#startedMs) / 1000)} s)`;
  }

  #emit(message: string): void {
    this.#count += 1;
    this.#send({ progress: this.#count, message });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
