import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import { Message } from "./agent-protocol.ts";
import { CreditedSender } from "./credited-sender.ts";

/** A run's stdin: takes bytes at any time and sends them in order, as the guest grants. */
export class RunInput {
  readonly #client: AgentClient;
  readonly #stream: number;
  readonly #sender: CreditedSender;
  #sending: Promise<void> = Promise.resolve();
  #unsentBytes = 0;
  #isEnded = false;

  constructor(client: AgentClient, stream: number) {
    this.#client = client;
    this.#stream = stream;
    this.#sender = new CreditedSender(client, Message.STDIN);
  }

  /** Bytes the guest has not taken yet */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** A guest that takes no more input may still end its run, so nobody waits for the last byte. */
  write(bytes: Uint8Array): void {
    this.#unsentBytes += bytes.byteLength;
    this.#then(async () => {
      await this.#sender.sendAll(this.#stream, bytes);
      this.#unsentBytes -= bytes.byteLength;
    });
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#then(() => {
      if (!this.#sender.isStopped) this.#client.send(Message.STDIN_EOF, this.#stream);
    });
  }

  grant(bytes: number): void {
    this.#sender.grant(bytes);
  }

  /** The run has ended: what is not sent yet never will be. */
  stop(): void {
    this.#isEnded = true;
    this.#sender.stop();
  }

  #then(send: () => void | Promise<void>): void {
    this.#sending = this.#sending.then(send).catch(unlessLost);
  }
}

/** A lost connection is reported by the run itself, through its stream. */
function unlessLost(error: unknown): void {
  if (!(error instanceof AgentError)) throw error;
}
