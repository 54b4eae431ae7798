import type { ConsoleOutput } from "../../../src/cli/console-output.ts";

/** Keeps what a command writes. */
export class CapturedOutput implements ConsoleOutput {
  stdoutText = "";
  stderrText = "";
  readonly stdout: ConsoleOutput["stdout"];
  readonly stderr: ConsoleOutput["stderr"];

  constructor(isTTY = false) {
    this.stdout = {
      write: writer((text) => {
        this.stdoutText += text;
      }),
    };
    this.stderr = {
      isTTY,
      write: writer((text) => {
        this.stderrText += text;
      }),
    };
  }
}

function writer(keep: (text: string) => void): ConsoleOutput["stdout"]["write"] {
  return (chunk: unknown, encodingOrDone?: unknown, done?: unknown) => {
    keep(String(chunk));
    const callback = typeof encodingOrDone === "function" ? encodingOrDone : done;
    if (typeof callback === "function") queueMicrotask(() => callback(null));
    return true;
  };
}
