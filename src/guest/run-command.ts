import { MAX_PAYLOAD_BYTES } from "../vsock/frame-connection.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import {
  decodeCredit,
  decodeJson,
  type ExitReply,
  encodeJson,
  exitReply,
  Message,
} from "./agent-protocol.ts";
import { CreditedSender } from "./credited-sender.ts";

/** How long after a run's own deadline, or after a kill, the host waits for its EXIT */
export const EXIT_GRACE_MS = 10_000;
const SIGKILL = 9;

export interface RunCommand {
  command: Uint8Array;
  /** Null for /dev/null */
  stdin: Uint8Array | null;
  cwd: string | null;
  timeoutMs: number;
  /** Per stream: the first half is kept as head, the rest as tail */
  maxOutputBytes: number;
}

export interface CapturedStream {
  head: Uint8Array;
  tail: Uint8Array;
  /** All the stream had; head and tail may be less */
  totalBytes: number;
  /** File in the guest with the whole stream; null when head and tail are all of it */
  path: string | null;
}

export interface CommandEnd {
  exit: ExitReply;
  stdout: CapturedStream;
  stderr: CapturedStream;
}

/**
 * Runs one command and resolves with its end, whatever that was.
 * An aborted signal kills the run's whole cgroup and rejects `aborted` once the agent confirmed its end.
 * Rejects `agent_silent` when the agent misses the deadline by `EXIT_GRACE_MS`: it cannot be trusted any more.
 */
export async function runCommand(
  client: AgentClient,
  run: RunCommand,
  signal: AbortSignal,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const stdin = new CreditedSender(client, Message.STDIN);
  const capture = new OutputCapture(run.maxOutputBytes);
  const { promise: exited, resolve, reject } = Promise.withResolvers<ExitReply>();
  const stream = client.openStream({
    onFrame: ({ type, payload }) => {
      if (type === Message.STDOUT || type === Message.STDERR) capture.add(type, payload);
      else if (type === Message.CREDIT) stdin.grant(decodeCredit(payload));
      else if (type === Message.EXIT) {
        client.endStream(stream);
        resolve(decodeJson(exitReply, payload));
      } else throw new RangeError(`type ${type} does not belong to a run`);
    },
    onError: reject,
  });
  const kill = () => client.send(Message.KILL, stream, encodeJson({ signal: SIGKILL }));
  const deadline = startDeadline(run.timeoutMs + EXIT_GRACE_MS, reject);
  const onAbort = () => {
    deadline.restart(EXIT_GRACE_MS);
    kill();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    sendRequest(client, stream, run);
    const fed = run.stdin === null ? Promise.resolve() : feed(client, stream, stdin, run.stdin);
    const exit = await exited;
    stdin.stop();
    await fed;
    if (signal.aborted) throw new AgentError("aborted", "the run was cancelled and killed");
    return { exit, stdout: capture.stdout(exit), stderr: capture.stderr(exit) };
  } finally {
    stdin.stop();
    deadline.stop();
    signal.removeEventListener("abort", onAbort);
    client.endStream(stream);
  }
}

function sendRequest(client: AgentClient, stream: number, run: RunCommand): void {
  client.send(
    Message.RUN,
    stream,
    encodeJson({
      command_bytes: run.command.byteLength,
      stdin: run.stdin !== null,
      cwd: run.cwd,
      timeout_ms: run.timeoutMs,
      max_output_bytes: run.maxOutputBytes,
    }),
  );
  for (let from = 0; from < run.command.byteLength; from += MAX_PAYLOAD_BYTES) {
    client.send(Message.COMMAND, stream, run.command.subarray(from, from + MAX_PAYLOAD_BYTES));
  }
}

async function feed(
  client: AgentClient,
  stream: number,
  sender: CreditedSender,
  bytes: Uint8Array,
): Promise<void> {
  try {
    if (await sender.sendAll(stream, bytes)) client.send(Message.STDIN_EOF, stream);
  } catch (error) {
    // A lost connection is reported by the run itself, through its stream.
    if (!(error instanceof AgentError)) throw error;
  }
}

function startDeadline(durationMs: number, reject: (error: AgentError) => void) {
  const expire = () =>
    reject(new AgentError("agent_silent", "the agent did not report the end of a run in time"));
  let timer = setTimeout(expire, durationMs);
  return {
    restart(nextMs: number) {
      clearTimeout(timer);
      timer = setTimeout(expire, nextMs);
    },
    stop: () => clearTimeout(timer),
  };
}

/** Collects what arrives of both streams, and refuses more than was asked for. */
class OutputCapture {
  readonly #limitBytes: number;
  readonly #chunks = { out: [] as Uint8Array[], err: [] as Uint8Array[] };
  readonly #bytes = { out: 0, err: 0 };

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  add(type: number, payload: Uint8Array): void {
    const side = type === Message.STDOUT ? "out" : "err";
    this.#bytes[side] += payload.byteLength;
    if (this.#bytes[side] > this.#limitBytes)
      throw new RangeError("the agent sent more output than was asked for");
    this.#chunks[side].push(payload);
  }

  stdout(exit: ExitReply): CapturedStream {
    return this.#split("out", exit.stdout_bytes, exit.stdout_head_bytes, exit.stdout_path);
  }

  stderr(exit: ExitReply): CapturedStream {
    return this.#split("err", exit.stderr_bytes, exit.stderr_head_bytes, exit.stderr_path);
  }

  #split(side: "out" | "err", totalBytes: number, headBytes: number, path: string | null): CapturedStream {
    const all = Buffer.concat(this.#chunks[side]);
    if (headBytes > all.byteLength || totalBytes < all.byteLength)
      throw new RangeError("the agent's output counts do not add up");
    return { head: all.subarray(0, headBytes), tail: all.subarray(headBytes), totalBytes, path };
  }
}
