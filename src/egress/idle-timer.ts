/** Calls once when nothing was touched for so long. */
export class IdleTimer implements Disposable {
  readonly #timer: ReturnType<typeof setTimeout>;

  constructor(idleMs: number, onIdle: () => void) {
    this.#timer = setTimeout(onIdle, idleMs);
  }

  touch(): void {
    this.#timer.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
