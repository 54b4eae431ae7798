import type { ConsoleOutput } from "./console-output.ts";

const ERASE_LINE = "\r\u001b[2K";

/** Shows the latest state on one line of a terminal, or each new state as a line of its own elsewhere. */
export class ProgressLine implements Disposable {
  readonly #stderr: ConsoleOutput["stderr"];
  #shown = "";

  constructor(stderr: ConsoleOutput["stderr"]) {
    this.#stderr = stderr;
  }

  show(message: string): void {
    if (message === this.#shown) return;
    this.#shown = message;
    this.#stderr.write(this.#stderr.isTTY ? `${ERASE_LINE}${message}` : `${message}\n`);
  }

  /** Leaves the terminal's line empty for what comes next. */
  [Symbol.dispose](): void {
    if (this.#stderr.isTTY && this.#shown) this.#stderr.write(ERASE_LINE);
  }
}
