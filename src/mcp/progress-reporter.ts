const MIN_INTERVAL_MS = 1000;
const HEARTBEAT_MS = 10_000;

export interface ProgressUpdate {
  /** Strictly increasing */
  progress: number;
  message: string;
}

/**
 * Passes on what a call is doing, at most once a second, and says so again every 10 s while nothing changes:
 * clients that wait for progress then know that the call is alive. Nothing follows the disposal.
 */
export class ProgressReporter implements Disposable {
  readonly #send: (update: ProgressUpdate) => void;
  readonly #startedMs = performance.now();
  #sentMs = Number.NEGATIVE_INFINITY;
  #message: string;
  #count = 0;
  #timer: Timer | undefined;

  /** `label` is the state until another is reported. */
  constructor(label: string, send: (update: ProgressUpdate) => void) {
    this.#message = label;
    this.#send = send;
    this.#scheduleHeartbeat();
  }

  report(message: string): void {
    this.#message = message;
    const waitMs = this.#sentMs + MIN_INTERVAL_MS - performance.now();
    if (waitMs <= 0) this.#emit(message);
    else this.#schedule(waitMs, () => this.#emit(this.#message));
  }

  #emit(message: string): void {
    this.#sentMs = performance.now();
    this.#count += 1;
    this.#send({ progress: this.#count, message });
    this.#scheduleHeartbeat();
  }

  #scheduleHeartbeat(): void {
    this.#schedule(HEARTBEAT_MS, () => {
      const elapsedS = Math.round((performance.now() - this.#startedMs) / 1000);
      this.#emit(`${this.#message} (${elapsedS} s)`);
    });
  }

  #schedule(delayMs: number, task: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(task, delayMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
