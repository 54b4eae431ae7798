import { MAX_PAYLOAD_BYTES } from "../vsock/frame-connection.ts";
import type { AgentClient } from "./agent-client.ts";
import { INITIAL_CREDIT_BYTES } from "./agent-protocol.ts";

const CHUNK_BYTES = Math.min(262_144, MAX_PAYLOAD_BYTES);

/** Sends one stream's data frames, never more than the agent granted. */
export class CreditedSender {
  readonly #client: AgentClient;
  readonly #type: number;
  #creditBytes = INITIAL_CREDIT_BYTES;
  /** All that was handed over so far */
  #sentBytes = 0;
  #stopped = false;
  #wake: (() => void) | null = null;

  constructor(client: AgentClient, type: number) {
    this.#client = client;
    this.#type = type;
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
      const size = Math.min(CHUNK_BYTES, this.#creditBytes, bytes.byteLength - sentBytes);
      this.#creditBytes -= size;
      const accepted = this.#client.send(this.#type, stream, bytes.subarray(sentBytes, sentBytes + size));
      sentBytes += size;
      this.#sentBytes += size;
      if (!accepted) await this.#client.drained();
    }
    return !this.#stopped;
  }
}
