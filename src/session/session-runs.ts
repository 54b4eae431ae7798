import { DeadlineError, within } from "../base/wait.ts";
import type { RunCommand, RunHandle } from "../guest/run-handle.ts";
import { explainRefusal } from "./guest-refusal.ts";
import { LONGEST_CHARACTER_BYTES, type OutputSource, readOutputPiece } from "./output-piece.ts";
import {
  DEFAULT_OUTPUT_BYTES,
  type PolledRun,
  type PollRequest,
  type RunRequest,
  type RunResult,
} from "./run-contract.ts";
import { formatCursor, parseCursor, type RunOffsets } from "./run-cursor.ts";
import { runEnd, runResult } from "./run-result.ts";
import { RunTable } from "./run-table.ts";
import { SessionError } from "./session-error.ts";
import { SessionRun } from "./session-run.ts";
import type { CallContext } from "./session-service.ts";
import type { SessionVm } from "./vm-source.ts";

const REPORT_MS = 500;
/** How long a run in the background may take to start before its id is given out all the same */
const START_MS = 5000;
const MAX_UNSENT_INPUT_BYTES = 33_554_432;

const FROM_START: PollRequest = { cursor: null, waitMs: 0, stdin: null, endsInput: false, signal: null };

/** What a session gives to its runs. */
export interface RunOwner {
  readonly id: string;
  use<T>(signal: AbortSignal, work: (vm: SessionVm, signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** The runs of one session: those that answer when they end, and those that go on without their caller. */
export class SessionRuns {
  readonly #owner: RunOwner;
  /** Time after which a call without progress is answered though its run goes on, in `ms`; 0 for never */
  readonly #callMs: number;
  readonly #table = new RunTable();
  #underWay = 0;

  constructor(owner: RunOwner, callMs: number) {
    this.#owner = owner;
    this.#callMs = callMs;
  }

  /** Runs in flight */
  get underWay(): number {
    return this.#underWay;
  }

  loseAll(cause: string): void {
    this.#table.loseAll(cause);
  }

  async run(request: RunRequest, call: CallContext): Promise<RunResult | PolledRun> {
    const mayGoOn = request.isBackground || this.#mayOutliveCall(request.timeoutMs, call);
    const stop = new AbortController();
    using _ = stopWith(call.signal, stop);
    const run = await this.#start(request, mayGoOn, stop, call);
    if (request.isBackground) {
      using started = run.nextChange();
      await started.wait(START_MS);
    } else {
      const result = await this.#result(run, call, mayGoOn);
      if (result) return result;
    }
    // Nobody would learn the id of a run that was cancelled or failed.
    if (call.signal.aborted || run.hasFailed) await run.outcome;
    return await this.poll(this.#table.keep(run), FROM_START, call);
  }

  async awaitRun(runId: string, call: CallContext): Promise<RunResult | PolledRun> {
    const run = this.#table.find(runId, this.#owner.id);
    using _ = stopWith(call.signal, run.stop);
    const result = await this.#result(run, call, this.#callMs > 0 && !call.progress);
    return result ?? (await this.poll(runId, FROM_START, call));
  }

  poll(runId: string, request: PollRequest, call: CallContext): Promise<PolledRun> {
    return this.#owner.use(call.signal, async (vm, signal) => {
      const offsets = parseCursor(request.cursor);
      const run = this.#table.find(runId, this.#owner.id);
      act(run, runId, request);
      const deadlineMs = performance.now() + request.waitMs;
      for (;;) {
        using change = run.nextChange();
        if (run.hasFailed) await run.outcome;
        const polled = await look(run, runId, offsets, vm, signal);
        const leftMs = deadlineMs - performance.now();
        if (polled.end || polled.cursor !== formatCursor(offsets) || leftMs <= 0) return polled;
        await change.wait(leftMs, signal);
      }
    });
  }

  /** Null when the call should be answered before the run ends. */
  async #result(run: SessionRun, call: CallContext, mayGoOn: boolean): Promise<RunResult | null> {
    const forget = quoteLastLine(run.handle, call);
    try {
      const ended = mayGoOn ? within(run.outcome, this.#callMs, "the run's end") : run.outcome;
      return runResult(await ended);
    } catch (error) {
      if (error instanceof DeadlineError) return null;
      throw error;
    } finally {
      forget();
    }
  }

  #mayOutliveCall(timeoutMs: number, call: CallContext): boolean {
    return this.#callMs > 0 && !call.progress && timeoutMs > this.#callMs;
  }

  async #start(
    request: RunRequest,
    mayGoOn: boolean,
    stop: AbortController,
    call: CallContext,
  ): Promise<SessionRun> {
    const command = agentCommand(request, mayGoOn, mayGoOn || call.quote !== undefined);
    const started = Promise.withResolvers<RunHandle>();
    this.#underWay++;
    const outcome = this.#owner
      .use(stop.signal, (vm, signal) => {
        const handle = vm.startRun(command, signal);
        started.resolve(handle);
        return handle.ended;
      })
      .catch((error: unknown) => {
        throw explainRefusal(error, request.cwd ?? "/root", "run_failed");
      })
      .finally(() => this.#underWay--);
    outcome.catch(started.reject);
    return new SessionRun(await started.promise, outcome, stop);
  }
}

function agentCommand(request: RunRequest, mayGoOn: boolean, reports: boolean): RunCommand {
  return {
    command: new TextEncoder().encode(request.command),
    stdin: request.stdin,
    cwd: request.cwd,
    timeoutMs: request.timeoutMs,
    maxOutputBytes: request.maxOutputBytes,
    ...(request.isBackground && { keepsStdinOpen: true }),
    ...(mayGoOn && { spool: true }),
    ...(reports && { reportMs: REPORT_MS }),
  };
}

/** A call that is taken back ends the run it waits for, as long as it does. */
function stopWith(signal: AbortSignal, stop: AbortController): Disposable {
  const onAbort = () => stop.abort();
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", onAbort) };
}

/** The caller's input and signal, in that order. */
function act({ handle }: SessionRun, runId: string, { stdin, endsInput, signal }: PollRequest): void {
  // To end once more what has ended is no mistake.
  if ((stdin !== null && handle.input?.isEnded !== false) || (endsInput && !handle.input)) {
    const next = "Start a run with background: true to give it input later.";
    throw new SessionError("stdin_closed", `run ${runId} takes no input: its stdin is closed. ${next}`);
  }
  if (stdin !== null && handle.input) {
    if (handle.input.unsentBytes + stdin.byteLength > MAX_UNSENT_INPUT_BYTES) {
      const waiting = `${handle.input.unsentBytes} bytes of input wait for run ${runId}, which does not read them.`;
      throw new SessionError("stdin_full", `${waiting} Poll without stdin until it does.`);
    }
    handle.input.write(stdin);
  }
  if (endsInput) handle.input?.end();
  if (signal !== null) handle.kill(signal);
}

/** Output from `offsets` on and the end, if there is one. */
async function look(
  run: SessionRun,
  runId: string,
  offsets: RunOffsets,
  vm: SessionVm,
  signal: AbortSignal,
): Promise<PolledRun> {
  const { end } = run;
  const sources = run.sources();
  const readFile = async (path: string, offset: number, limitBytes: number) =>
    (await vm.getFile(path, { offset, bytes: limitBytes, limitBytes }, signal)).content;
  const [stdout, stderr] = await Promise.all([
    readOutputPiece(sources.stdout, offsets.stdout, DEFAULT_OUTPUT_BYTES, readFile),
    readOutputPiece(sources.stderr, offsets.stderr, DEFAULT_OUTPUT_BYTES, readFile),
  ]);
  const next = { stdout: stdout.nextOffset, stderr: stderr.nextOffset };
  return {
    runId,
    end: end && runEnd(end),
    stdout: stdout.text,
    stderr: stderr.text,
    hasStdoutReplacements: stdout.hasReplacements,
    hasStderrReplacements: stderr.hasReplacements,
    stdoutBytes: sources.stdout.totalBytes,
    stderrBytes: sources.stderr.totalBytes,
    stdoutPath: sources.stdout.path,
    stderrPath: sources.stderr.path,
    cursor: formatCursor(next),
    hasMore: isUnread(sources.stdout, next.stdout) || isUnread(sources.stderr, next.stderr),
  };
}

/** While the run goes on, the last bytes may be a character of which the rest is still to come. */
function isUnread({ totalBytes, hasEnded }: OutputSource, offset: number): boolean {
  return totalBytes - offset >= (hasEnded ? 1 : LONGEST_CHARACTER_BYTES);
}

function quoteLastLine(
  handle: Pick<RunHandle, "onChange" | "latestReport">,
  { quote }: CallContext,
): () => void {
  if (!quote) return () => undefined;
  return handle.onChange(() => {
    const line = handle.latestReport?.last_line;
    if (line) quote(line);
  });
}
