import { DeadlineError, within } from "../base/wait.ts";
import { type CapturedStream, type CommandEnd, isCut } from "../guest/output-capture.ts";
import type { RunHandle } from "../guest/run-handle.ts";
import type { OutputSource } from "./output-piece.ts";

export interface NextChange extends Disposable {
  /** Resolves when it has happened or the time is over; rejects when the signal aborts */
  wait(longestMs: number, signal?: AbortSignal): Promise<void>;
}

const NOTHING = { head: new Uint8Array(0), tail: new Uint8Array(0) };

/** What is asked of a run besides its end */
type LiveRun = Omit<RunHandle, "ended">;

/** Of a run that has ended, in place of what holds its output */
const FORGOTTEN: LiveRun = {
  latestReport: null,
  input: null,
  heads: () => ({ stdout: NOTHING.head, stderr: NOTHING.head }),
  kill: () => undefined,
  onChange: () => () => undefined,
};

/** A run that may outlive the call that started it: its end is kept until somebody asks. */
export class SessionRun {
  /** Aborted, it kills everything the run started; `outcome` rejects `cancelled` once that is gone */
  readonly stop: AbortController;
  readonly #wakers = new Set<() => void>();
  #handle: LiveRun;
  #outcome: Promise<CommandEnd>;
  #end: CommandEnd | null = null;
  #hasSettled = false;

  constructor(handle: LiveRun, outcome: Promise<CommandEnd>, stop: AbortController) {
    this.#handle = handle;
    this.#outcome = outcome;
    this.stop = stop;
    const settle = () => {
      this.#hasSettled = true;
      for (const wake of this.#wakers) wake();
    };
    outcome.then((end) => {
      this.#end = end;
      settle();
    }, settle);
  }

  get handle(): LiveRun {
    return this.#handle;
  }

  /** As the handle's end, with errors for the caller */
  get outcome(): Promise<CommandEnd> {
    return this.#outcome;
  }

  get isUnderWay(): boolean {
    return !this.#hasSettled;
  }

  get hasFailed(): boolean {
    return this.#hasSettled && this.#end === null;
  }

  /** Null while it runs, and when it failed: then `outcome` says how. */
  get end(): CommandEnd | null {
    return this.#end;
  }

  /** False once it was forgotten */
  get hasOutput(): boolean {
    return this.#handle !== FORGOTTEN;
  }

  /** Lets go of the output of a run that has ended; its files in the guest may still have it. */
  forgetOutput(): void {
    this.#handle = FORGOTTEN;
    if (!this.#end) return;
    const { exit, stdout, stderr } = this.#end;
    this.#end = { exit, stdout: { ...stdout, ...NOTHING }, stderr: { ...stderr, ...NOTHING } };
    this.#outcome = Promise.resolve(this.#end);
  }

  /** Memory the output of its end takes, in `bytes` */
  get sizeBytes(): number {
    if (!this.#end) return 0;
    return capturedBytes(this.#end.stdout) + capturedBytes(this.#end.stderr);
  }

  /** Notices the next output, report or end from this moment on, so that none is missed before the wait for it. */
  nextChange(): NextChange {
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = this.handle.onChange(resolve);
    if (this.#hasSettled) resolve();
    this.#wakers.add(resolve);
    return {
      [Symbol.dispose]: () => {
        forget();
        this.#wakers.delete(resolve);
      },
      async wait(longestMs, signal) {
        try {
          await within(promise, longestMs, "a change", signal);
        } catch (error) {
          if (!(error instanceof DeadlineError)) throw error;
        }
      },
    };
  }

  /** Where a reader finds both streams now. */
  sources(): { stdout: OutputSource; stderr: OutputSource } {
    if (this.#end) return { stdout: endedSource(this.#end.stdout), stderr: endedSource(this.#end.stderr) };
    const { stdout, stderr } = this.handle.heads();
    const report = this.handle.latestReport;
    return {
      stdout: growingSource(stdout, report?.stdout_bytes, report?.stdout_path),
      stderr: growingSource(stderr, report?.stderr_bytes, report?.stderr_path),
    };
  }
}

function capturedBytes({ head, tail }: CapturedStream): number {
  return head.byteLength + tail.byteLength;
}

function growingSource(head: Uint8Array, reportedBytes = 0, path: string | null = null): OutputSource {
  const totalBytes = Math.max(reportedBytes, head.byteLength);
  return { head, tail: new Uint8Array(0), totalBytes, path, hasEnded: false };
}

function endedSource(stream: CapturedStream): OutputSource {
  const { head, tail, totalBytes, path } = stream;
  const rest = { totalBytes, path, hasEnded: true };
  if (isCut(stream)) return { head, tail, ...rest };
  return { head: Buffer.concat([head, tail]), tail: new Uint8Array(0), ...rest };
}
