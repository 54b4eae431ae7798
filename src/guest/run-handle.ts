import { MAX_PAYLOAD_BYTES } from "../vsock/frame-connection.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import {
  decodeCredit,
  decodeJson,
  encodeJson,
  exitReply,
  Message,
  type ReportMessage,
  reportMessage,
} from "./agent-protocol.ts";
import { type CommandEnd, OutputCapture } from "./output-capture.ts";
import { RunInput } from "./run-input.ts";

/** How long after a run's own deadline, or after a kill, the host waits for its EXIT */
export const EXIT_GRACE_MS = 10_000;
const SIGKILL = 9;

export interface RunCommand {
  command: Uint8Array;
  /** Null for /dev/null */
  stdin: Uint8Array | null;
  /** True: more stdin may follow, until `RunHandle.input` is ended */
  keepsStdinOpen?: boolean;
  cwd: string | null;
  timeoutMs: number;
  /** Per stream: the first half is kept as head, the rest as tail */
  maxOutputBytes: number;
  /** True: both streams go to files in the guest from their first byte on */
  spool?: boolean;
  /** Least time between two reports; no reports without it. 50 to 60 000 `ms` */
  reportMs?: number;
}

/** What the layers above need of a run under way. */
export interface RunHandle {
  /**
   * Resolves with the run's end, whatever that was. Rejects `aborted` once the agent confirmed the end of a run whose
   * signal was aborted, and `agent_silent` when the agent misses the deadline: it cannot be trusted any more.
   */
  readonly ended: Promise<CommandEnd>;
  readonly latestReport: ReportMessage | null;
  /** What came of the first half of what is sent of each stream */
  heads(): { stdout: Uint8Array; stderr: Uint8Array };
  /** Null when stdin is /dev/null */
  readonly input: Pick<RunInput, "write" | "end" | "isEnded" | "unsentBytes"> | null;
  /** Sends a signal to every process of the run; nothing happens once it has ended. */
  kill(signal: number): void;
  /** Calls back on each output and report, until the returned function is called; the end is told by `ended`. */
  onChange(listener: () => void): () => void;
}

/** Starts one command. An aborted signal kills the run's whole cgroup. */
export function startRun(
  client: AgentClient,
  run: RunCommand,
  signal: AbortSignal,
  exitGraceMs = EXIT_GRACE_MS,
): RunHandle {
  signal.throwIfAborted();
  return new AgentRun(client, run, signal, exitGraceMs);
}

class AgentRun implements RunHandle {
  readonly ended: Promise<CommandEnd>;
  readonly input: RunInput | null;
  readonly #client: AgentClient;
  readonly #stream: number;
  readonly #capture: OutputCapture;
  readonly #listeners = new Set<() => void>();
  readonly #end = Promise.withResolvers<CommandEnd>();
  #latestReport: ReportMessage | null = null;
  #isOver = false;

  constructor(client: AgentClient, run: RunCommand, signal: AbortSignal, exitGraceMs: number) {
    this.#client = client;
    this.#capture = new OutputCapture(run.maxOutputBytes);
    this.#stream = client.openStream({
      onFrame: (frame) => this.#take(frame),
      onError: (error) => this.#end.reject(error),
    });
    const hasInput = run.stdin !== null || run.keepsStdinOpen === true;
    this.input = hasInput ? new RunInput(client, this.#stream) : null;
    this.ended = this.#live(run, signal, exitGraceMs);
    this.ended.catch(() => undefined);
  }

  get latestReport(): ReportMessage | null {
    return this.#latestReport;
  }

  heads(): { stdout: Uint8Array; stderr: Uint8Array } {
    return this.#capture.heads();
  }

  kill(signal: number): void {
    if (this.#isOver) return;
    try {
      this.#client.send(Message.KILL, this.#stream, encodeJson({ signal }));
    } catch (error) {
      // A lost connection is reported by the run itself, through its stream.
      if (!(error instanceof AgentError)) throw error;
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #live(run: RunCommand, signal: AbortSignal, exitGraceMs: number): Promise<CommandEnd> {
    const { time } = this.#client;
    const expire = () =>
      this.#end.reject(new AgentError("agent_silent", "the agent did not report the end of a run in time"));
    let stopDeadline = time.after(run.timeoutMs + exitGraceMs, expire);
    const onAbort = () => {
      stopDeadline();
      stopDeadline = time.after(exitGraceMs, expire);
      this.kill(SIGKILL);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      this.#request(run);
      const end = await this.#end.promise;
      if (signal.aborted) throw new AgentError("aborted", "the run was cancelled and killed");
      return end;
    } finally {
      this.#isOver = true;
      this.input?.stop();
      stopDeadline();
      signal.removeEventListener("abort", onAbort);
      this.#client.endStream(this.#stream);
    }
  }

  #request(run: RunCommand): void {
    const body = {
      command_bytes: run.command.byteLength,
      stdin: this.input !== null,
      cwd: run.cwd,
      timeout_ms: run.timeoutMs,
      max_output_bytes: run.maxOutputBytes,
      ...(run.spool && { spool: true }),
      ...(run.reportMs && { report_ms: run.reportMs }),
    };
    this.#client.send(Message.RUN, this.#stream, encodeJson(body));
    for (let from = 0; from < run.command.byteLength; from += MAX_PAYLOAD_BYTES) {
      const part = run.command.subarray(from, from + MAX_PAYLOAD_BYTES);
      this.#client.send(Message.COMMAND, this.#stream, part);
    }
    if (run.stdin !== null && run.stdin.byteLength > 0) this.input?.write(run.stdin);
    if (!run.keepsStdinOpen) this.input?.end();
  }

  #take({ type, payload }: { type: number; payload: Uint8Array }): void {
    if (type === Message.STDOUT || type === Message.STDERR) {
      this.#capture.add(type, payload);
      this.#tell();
    } else if (type === Message.REPORT) {
      this.#latestReport = decodeJson(reportMessage, payload);
      this.#tell();
    } else if (type === Message.CREDIT && this.input) this.input.grant(decodeCredit(payload));
    else if (type === Message.EXIT) {
      const end = this.#capture.finish(decodeJson(exitReply, payload));
      this.#client.endStream(this.#stream);
      this.#end.resolve(end);
    } else throw new RangeError(`type ${type} does not belong to a run`);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
