import type { Session } from "./session.ts";

const LONGEST_ROUND_MS = 30_000;

/** Closes sessions nobody uses. A session with a call in flight is never idle, however long the call takes. */
export class IdleReaper {
  readonly #idleMs: number;
  readonly #sessions: () => Iterable<Session>;
  readonly #close: (session: Session, reason: string) => void;
  #timer: Timer | null = null;

  constructor(
    idleMs: number,
    sessions: () => Iterable<Session>,
    close: (session: Session, reason: string) => void,
  ) {
    this.#idleMs = idleMs;
    this.#sessions = sessions;
    this.#close = close;
  }

  start(): void {
    if (this.#timer) return;
    this.#timer = setInterval(() => this.#round(), Math.min(LONGEST_ROUND_MS, this.#idleMs / 4));
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  #round(): void {
    const now = performance.now();
    for (const session of [...this.#sessions()]) {
      if (session.idleMs(now) > this.#idleMs)
        this.#close(session, `it was closed after ${this.#idleMs / 1000} s without use`);
    }
  }
}
