import { MAX_PAYLOAD_BYTES } from "../vsock/frame-connection.ts";
import type { AgentClient } from "./agent-client.ts";
import { INITIAL_CREDIT_BYTES } from "./agent-protocol.ts";

const CHUNK_BYTES = Math.min(262_144, MAX_PAYLOAD_BYTES);

/** Sends one stream's data frames, never more than the agent granted. */
export class CreditedSender {
  readonly #client: AgentClient;
  readonly #type: number;
  #creditBytes: number;
  /** All that was handed over so far */
  #sentBytes = 0;
  #stopped = false;
  #wake: (() => void) | null = null;

  constructor(client: AgentClient, type: number, windowBytes = INITIAL_CREDIT_BYTES) {
    this.#client = client;
    this.#type = type;
    this.#creditBytes = windowBytes;
  }

  /** What may still be sent before the next grant */
  get creditBytes(): number {
    return this.#creditBytes;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  grant(bytes: number): void {
    this.#creditBytes += bytes;
    this.#wake?.();
  }

  /** Makes a running `sendAll` return early: the stream has ended. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /** Resolves true when everything was handed over, false when the stream ended first. */
  async sendAll(stream: number, bytes: Uint8Array): Promise<boolean> {
    let sentBytes = 0;
    while (sentBytes < bytes.byteLength) {
      if (this.#stopped) return false;
      if (this.#creditBytes === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = null;
        continue;
      }
      // Of many senders that were woken together the first may have filled the connection again.
      if (this.#client.isFull) {
        await this.#client.drained();
        continue;
      }
      const size = Math.min(CHUNK_BYTES, this.#creditBytes, bytes.byteLength - sentBytes);
      this.#creditBytes -= size;
      const accepted = this.#client.send(this.#type, stream, bytes.subarray(sentBytes, sentBytes + size));
      sentBytes += size;
      this.#sentBytes += size;
      // Also behind the last piece: whoever made the bytes makes no more before these are gone.
      if (!accepted) await this.#client.drained();
    }
    return !this.#stopped;
  }
}
