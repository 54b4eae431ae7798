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
import { ByteCollector } from "./byte-collector.ts";
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
  /** File in the guest with the stream; null when head and tail are all of it, or there was no room for one */
  path: string | null;
  /** The file has all of the stream, not only its start */
  isPathWhole: boolean;
}

export interface CommandEnd {
  exit: ExitReply;
  stdout: CapturedStream;
  stderr: CapturedStream;
}

/**
 * Runs one command and resolves with its end, whatever that was.
 * An aborted signal kills the run's whole cgroup and rejects `aborted` once the agent confirmed its end.
 * Rejects `agent_silent` when the agent misses the deadline by `exitGraceMs`: it cannot be trusted any more.
 */
export async function runCommand(
  client: AgentClient,
  run: RunCommand,
  signal: AbortSignal,
  exitGraceMs = EXIT_GRACE_MS,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const stdin = new CreditedSender(client, Message.STDIN);
  const capture = new OutputCapture(run.maxOutputBytes);
  const { promise: ended, resolve, reject } = Promise.withResolvers<CommandEnd>();
  const stream = client.openStream({
    onFrame: ({ type, payload }) => {
      if (type === Message.STDOUT || type === Message.STDERR) capture.add(type, payload);
      else if (type === Message.CREDIT) stdin.grant(decodeCredit(payload));
      else if (type === Message.EXIT) {
        const end = capture.finish(decodeJson(exitReply, payload));
        client.endStream(stream);
        resolve(end);
      } else throw new RangeError(`type ${type} does not belong to a run`);
    },
    onError: reject,
  });
  const deadline = startDeadline(run.timeoutMs + exitGraceMs, reject);
  const onAbort = () => {
    deadline.restart(exitGraceMs);
    void unlessLost(() => client.send(Message.KILL, stream, encodeJson({ signal: SIGKILL })));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    sendRequest(client, stream, run);
    // A guest that takes no more input may still end its run, so nobody waits for the last byte.
    const input = run.stdin;
    if (input !== null) void unlessLost(() => feed(client, stream, stdin, input));
    const end = await ended;
    if (signal.aborted) throw new AgentError("aborted", "the run was cancelled and killed");
    return end;
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
  if (await sender.sendAll(stream, bytes)) client.send(Message.STDIN_EOF, stream);
}

/** A lost connection is reported by the run itself, through its stream. */
async function unlessLost(send: () => unknown): Promise<void> {
  try {
    await send();
  } catch (error) {
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

/** Collects what arrives of both streams, and refuses more than was asked for and counts that do not add up. */
class OutputCapture {
  readonly #limitBytes: number;
  readonly #stdout = new ByteCollector();
  readonly #stderr = new ByteCollector();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  add(type: number, payload: Uint8Array): void {
    const collector = type === Message.STDOUT ? this.#stdout : this.#stderr;
    if (collector.byteLength + payload.byteLength > this.#limitBytes)
      throw new RangeError("the agent sent more output than was asked for");
    collector.add(payload);
  }

  finish(exit: ExitReply): CommandEnd {
    return {
      exit,
      stdout: {
        ...split(this.#stdout.take(), exit.stdout_bytes, exit.stdout_head_bytes),
        path: exit.stdout_path,
        isPathWhole: exit.stdout_spool_complete,
      },
      stderr: {
        ...split(this.#stderr.take(), exit.stderr_bytes, exit.stderr_head_bytes),
        path: exit.stderr_path,
        isPathWhole: exit.stderr_spool_complete,
      },
    };
  }
}

function split(all: Uint8Array, totalBytes: number, headBytes: number) {
  if (headBytes > all.byteLength || totalBytes < all.byteLength)
    throw new RangeError("the agent's output counts do not add up");
  return { head: all.subarray(0, headBytes), tail: all.subarray(headBytes), totalBytes };
}
