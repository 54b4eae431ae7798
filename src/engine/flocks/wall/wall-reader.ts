import type { WallLog } from "./wall-log.ts";
import type { WallMessage } from "./wall-message.ts";

/** What may wait for a reader that has caught up, in `bytes`; one that falls behind further is cut off */
const MAX_WAITING_BYTES = 8 * 1_048_576;
/** What a message takes besides its body */
const MESSAGE_BYTES = 256;

/**
 * One reader of a wall. It reads the log at its own pace until it has caught up, and is handed each message from then on.
 * A message that is written while it crosses over has a number it has seen, or one it has not.
 */
export class WallReader {
  readonly #log: WallLog;
  readonly #all: Set<WallReader>;
  #position: number;
  #lastSeq = 0;
  #isLive = false;
  /** No more is taken; what waits is still given */
  #isFinished = false;
  readonly #waiting: WallMessage[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | null = null;

  /** It is in `all` until it ends. */
  constructor(log: WallLog, all: Set<WallReader>) {
    this.#log = log;
    this.#all = all;
    this.#position = log.start;
    all.add(this);
  }

  /** Nothing has to be read before it waits for new messages. */
  get hasCaughtUp(): boolean {
    return this.#position === this.#log.end;
  }

  /** The next messages, at least one; null when it is cut off or the wall is closed. */
  async next(): Promise<WallMessage[] | null> {
    for (;;) {
      const messages = this.#isLive ? this.#takeWaiting() : this.#catchUp();
      if (messages === null) return null;
      if (messages.length > 0) {
        this.#lastSeq = messages.at(-1)!.seq;
        return messages;
      }
      if (!this.#isLive) continue;
      if (this.#isFinished) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Takes what was just written. Never waits. */
  offer(messages: readonly WallMessage[]): void {
    if (!this.#isLive || this.#isFinished) return;
    // What is written at once is offered at once, which is no fault of the reader.
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      this.cutOff();
      return;
    }
    for (const message of messages) {
      if (message.seq <= this.#lastSeq) continue;
      this.#waiting.push(message);
      this.#waitingBytes += message.body.length + MESSAGE_BYTES;
    }
    this.#wake?.();
  }

  /** Ends it behind what waits. */
  finish(): void {
    this.#isFinished = true;
    this.#all.delete(this);
    this.#wake?.();
  }

  /** Ends it here. */
  cutOff(): void {
    this.#waiting.length = 0;
    this.#isLive = true;
    this.finish();
  }

  /** From the log; null when what comes next is not kept any more. */
  #catchUp(): WallMessage[] | null {
    if (this.hasCaughtUp) {
      this.#isLive = true;
      return [];
    }
    const read = this.#log.read(this.#position);
    if (read === null) {
      this.cutOff();
      return null;
    }
    this.#position = read.next;
    return read.messages;
  }

  #takeWaiting(): WallMessage[] {
    this.#waitingBytes = 0;
    return this.#waiting.splice(0);
  }
}
