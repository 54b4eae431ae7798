import type { Logger } from "../base/logger.ts";

/** After a failed refill or a clone's death the pool waits, doubling up to the limit until a clone was of use. */
const FIRST_BACKOFF_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;

/** What the pool asks of a clone; `Vm` is one. */
export interface PoolableVm extends AsyncDisposable {
  readonly died: Promise<unknown>;
}

export interface ClonePoolOptions<Pooled extends PoolableVm> {
  /** Clones kept ready; 0 turns the pool off */
  size: number;
  /** Restores, exercises and pauses one clone */
  prepare: (signal: AbortSignal) => Promise<Pooled>;
  log: Logger;
  /** Default 1000 */
  firstBackoffMs?: number;
}

/** Keeps clones restored, exercised and paused, so that an open only has to wake one. */
export class ClonePool<Pooled extends PoolableVm> implements AsyncDisposable {
  readonly #options: ClonePoolOptions<Pooled>;
  readonly #ready: Pooled[] = [];
  readonly #disposals = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #refill: Promise<void> | null = null;
  #backoffMs: number;
  #retry: Timer | null = null;

  constructor(options: ClonePoolOptions<Pooled>) {
    this.#options = options;
    this.#backoffMs = this.#firstBackoffMs;
  }

  get #firstBackoffMs(): number {
    return this.#options.firstBackoffMs ?? FIRST_BACKOFF_MS;
  }

  get readyCount(): number {
    return this.#ready.length;
  }

  /** A ready clone, or null when there is none at the moment. The caller owns it. Unwanted ones are ended. */
  take(isWanted: (vm: Pooled) => boolean = () => true): Pooled | null {
    for (let vm = this.#ready.shift(); vm; vm = this.#ready.shift()) {
      if (isWanted(vm)) {
        this.#backoffMs = this.#firstBackoffMs;
        return vm;
      }
      void this.#discard(vm);
    }
    return null;
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
      this.#ready.push(vm);
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
    if (this.#retry || this.#stopping.signal.aborted) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.fill();
    }, this.#backoffMs);
    this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
  }

  /** A clone that dies while it waits is replaced; one that was taken is its owner's. */
  async #drop(vm: Pooled): Promise<void> {
    const index = this.#ready.indexOf(vm);
    if (index < 0) return;
    this.#ready.splice(index, 1);
    await this.#discard(vm);
    this.#retryLater();
  }

  #discard(vm: Pooled): Promise<void> {
    const disposal = this.#end(vm).finally(() => this.#disposals.delete(disposal));
    this.#disposals.add(disposal);
    return disposal;
  }

  async #end(vm: Pooled): Promise<void> {
    try {
      await vm[Symbol.asyncDispose]();
    } catch (error) {
      this.#options.log.error({ err: error }, "a pooled clone could not be ended");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error("the pool is closing"));
    if (this.#retry) clearTimeout(this.#retry);
    await this.#refill;
    // What was prepared meanwhile is among the ready ones by now.
    await Promise.all([...this.#disposals, ...this.#ready.splice(0).map((vm) => this.#end(vm))]);
  }
}
