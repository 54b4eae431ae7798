import type { RefusalReason } from "./egress-error.ts";

/** What one VM's connections came to. They only grow, but for `open`. */
export class EgressCounters {
  /** Connections there are now */
  open = 0;
  allowed = 0;
  bytesFromGuest = 0;
  bytesToGuest = 0;
  readonly refused = new Map<RefusalReason, number>();

  countRefused(reason: RefusalReason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}
