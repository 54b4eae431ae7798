import type { Channel } from "./channel.ts";
import type { RefusalReason } from "./egress-error.ts";

/** What one VM's connections came to. They only grow, but for `open`. */
export class EgressCounters {
  /** Connections there are now */
  open = 0;
  allowed = 0;
  bytesFromGuest = 0;
  bytesToGuest = 0;
  readonly refused = new Map<RefusalReason, number>();

  /** To be called whenever bytes of the guest's connection have moved. */
  byteCountOf(client: Channel): () => void {
    let [read, written] = [client.readBytes, client.writtenBytes];
    return () => {
      this.bytesFromGuest += client.readBytes - read;
      this.bytesToGuest += client.writtenBytes - written;
      [read, written] = [client.readBytes, client.writtenBytes];
    };
  }

  countRefused(reason: RefusalReason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}
