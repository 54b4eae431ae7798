import { type StartTimer, within } from "../base/wait.ts";

interface Timer {
  leftMs: number;
  readonly expire: () => void;
  startedAt: number;
  running: ReturnType<typeof setTimeout> | null;
}

/** The time in which a guest can do something: it stands still while the machine does, and deadlines with it. */
export class GuestTime {
  readonly #timers = new Set<Timer>();
  /** `Date.now()` of the machine's stop: a clock that goes on while the host sleeps, as what the guest has missed does */
  #stoppedAt: number | null = null;

  get isStopped(): boolean {
    return this.#stoppedAt !== null;
  }

  /** Calls back once the guest has had `durationMs`, unless the returned function is called before. */
  readonly after: StartTimer = (durationMs, expire) => {
    const timer: Timer = { leftMs: durationMs, expire, startedAt: 0, running: null };
    this.#timers.add(timer);
    if (!this.isStopped) this.#run(timer);
    return () => {
      this.#timers.delete(timer);
      if (timer.running) clearTimeout(timer.running);
    };
  };

  within<T>(promise: Promise<T>, deadlineMs: number, what: string, signal?: AbortSignal): Promise<T> {
    return within(promise, deadlineMs, what, signal, this.after);
  }

  stop(): void {
    if (this.isStopped) return;
    this.#stoppedAt = Date.now();
    for (const timer of this.#timers) {
      if (timer.running) clearTimeout(timer.running);
      timer.leftMs -= performance.now() - timer.startedAt;
    }
  }

  /** Deadlines go on with what was left of them. Returns how long it stood still, in `ms`. */
  goOn(): number {
    if (this.#stoppedAt === null) return 0;
    const stoppedMs = Math.max(0, Date.now() - this.#stoppedAt);
    this.#stoppedAt = null;
    for (const timer of this.#timers) this.#run(timer);
    return stoppedMs;
  }

  #run(timer: Timer): void {
    timer.startedAt = performance.now();
    timer.running = setTimeout(
      () => {
        this.#timers.delete(timer);
        timer.expire();
      },
      Math.max(0, timer.leftMs),
    );
  }
}
