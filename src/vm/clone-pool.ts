import type { Logger } from "../base/logger.ts";
import type { Vm } from "./vm.ts";

/** After a failed refill the pool waits this long, doubling up to the limit. */
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;

export interface ClonePoolOptions {
  /** Clones kept ready; 0 turns the pool off */
  size: number;
  /** Restores, exercises and pauses one clone */
  prepare: (signal: AbortSignal) => Promise<Vm>;
  log: Logger;
}

/** Keeps clones restored, exercised and paused, so that an open only has to wake one. */
export class ClonePool implements AsyncDisposable {
  readonly #options: ClonePoolOptions;
  readonly #ready: Vm[] = [];
  readonly #stopping = new AbortController();
  #refill: Promise<void> | null = null;
  #backoffMs = FIRST_BACKOFF_MS;
  #retry: Timer | null = null;

  constructor(options: ClonePoolOptions) {
    this.#options = options;
  }

  get readyCount(): number {
    return this.#ready.length;
  }

  /** A ready clone, or null when there is none at the moment. The caller owns it. */
  take(): Vm | null {
    return this.#ready.shift() ?? null;
  }

  /** Starts filling the pool in the background, if it is not full and nobody else is at it. */
  fill(): void {
    if (this.#refill || this.#retry || this.#stopping.signal.aborted) return;
    if (this.#ready.length >= this.#options.size) return;
    this.#refill = this.#prepareOne().finally(() => {
      this.#refill = null;
      this.fill();
    });
  }

  async #prepareOne(): Promise<void> {
    try {
      const vm = await this.#options.prepare(this.#stopping.signal);
      if (this.#stopping.signal.aborted) return await vm[Symbol.asyncDispose]();
      this.#ready.push(vm);
      this.#backoffMs = FIRST_BACKOFF_MS;
      void vm.died.then(() => this.#drop(vm));
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#options.log.warn(
        { error: String(error), retryMs: this.#backoffMs },
        "a pooled clone could not be made",
      );
      this.#retryLater();
    }
  }

  #retryLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.fill();
    }, this.#backoffMs);
    this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
  }

  /** A clone that dies while it waits is replaced; one that was taken is its owner's. */
  async #drop(vm: Vm): Promise<void> {
    const index = this.#ready.indexOf(vm);
    if (index < 0) return;
    this.#ready.splice(index, 1);
    await vm[Symbol.asyncDispose]();
    this.fill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error("the pool is closing"));
    if (this.#retry) clearTimeout(this.#retry);
    await this.#refill;
    await Promise.all(this.#ready.splice(0).map((vm) => vm[Symbol.asyncDispose]()));
  }
}
