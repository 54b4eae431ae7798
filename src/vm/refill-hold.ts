import type { Activity } from "./activity.ts";

/** Longest one refill is held, all holds together: half of the shortest deadline a clone has until it is ready */
export const LONGEST_HOLD_MS = 5000;
/** A call that follows another within this time finds the refill still held. */
const SETTLE_MS = 10;

/** What a hold asks of a VMM; `Vmm` is one. */
export interface Holdable {
  hold(): void;
  release(): void;
}

/**
 * Lets a refill of the pool give way: while calls are in flight its VMM stands still. Once the refill was held for
 * `longestMs` in all it runs to its end, so that steady load delays the pool but does not starve it.
 */
export class RefillHold implements Disposable {
  readonly #activity: Activity;
  readonly #settleMs: number;
  #leftMs: number;
  #vmm: Holdable | null = null;
  #watch: Disposable | null = null;
  #heldSince: number | null = null;
  #limit: Timer | null = null;
  #settling: Timer | null = null;

  constructor(activity: Activity, longestMs = LONGEST_HOLD_MS, settleMs = SETTLE_MS) {
    this.#activity = activity;
    this.#leftMs = longestMs;
    this.#settleMs = settleMs;
  }

  /** From now on this VMM is held and released, until the hold is disposed of. Once per refill. */
  over(vmm: Holdable): void {
    this.#vmm = vmm;
    this.#watch = this.#activity.watch((isBusy) => (isBusy ? this.#hold() : this.#settle()));
  }

  #hold(): void {
    this.#endSettling();
    if (this.#heldSince !== null || this.#leftMs <= 0) return;
    this.#heldSince = performance.now();
    this.#limit = setTimeout(() => this[Symbol.dispose](), this.#leftMs);
    this.#vmm?.hold();
  }

  #settle(): void {
    if (this.#heldSince !== null) this.#settling ??= setTimeout(() => this.#release(), this.#settleMs);
  }

  #release(): void {
    this.#endSettling();
    if (this.#limit) clearTimeout(this.#limit);
    this.#limit = null;
    if (this.#heldSince === null) return;
    this.#leftMs -= performance.now() - this.#heldSince;
    this.#heldSince = null;
    this.#vmm?.release();
  }

  #endSettling(): void {
    if (this.#settling) clearTimeout(this.#settling);
    this.#settling = null;
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
    this.#watch = null;
    this.#release();
  }
}
