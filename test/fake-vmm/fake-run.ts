import { type ExitReply, encodeCredit, Message } from "../../src/guest/agent-protocol.ts";
import type { Frame } from "../../src/vsock/frame-connection.ts";
import type { Peer } from "./peer.ts";

export interface RunRequestBody {
  command_bytes: number;
  stdin: boolean;
  cwd: string | null;
  timeout_ms: number;
  max_output_bytes: number;
}

/** A run as the agent sees it. What it does is up to the test. */
export class FakeRun {
  readonly request: RunRequestBody;
  readonly stream: number;
  readonly peer: Peer;
  /** Settles with the signal of the first KILL */
  readonly killed: Promise<number>;
  readonly #onReady: (run: FakeRun) => void;
  readonly #kill = Promise.withResolvers<number>();
  readonly #command: Uint8Array[] = [];
  readonly #stdin: Uint8Array[] = [];
  #commandBytes = 0;
  #stdinEnded = false;
  #grantsStdin: boolean;

  /** `onReady` is called when the command, and stdin if there is one, came whole. */
  constructor(
    peer: Peer,
    stream: number,
    request: RunRequestBody,
    grantsStdin: boolean,
    onReady: (run: FakeRun) => void,
  ) {
    this.peer = peer;
    this.stream = stream;
    this.request = request;
    this.killed = this.#kill.promise;
    this.#grantsStdin = grantsStdin;
    this.#onReady = onReady;
  }

  get command(): string {
    return Buffer.concat(this.#command).toString();
  }

  /** How many COMMAND frames the command came in */
  get commandFrames(): number {
    return this.#command.length;
  }

  get stdin(): Buffer {
    return Buffer.concat(this.#stdin);
  }

  get stdinBytes(): number {
    return this.#stdin.reduce((sum, bytes) => sum + bytes.byteLength, 0);
  }

  take({ type, payload }: Frame): void {
    if (type === Message.KILL) this.#kill.resolve(JSON.parse(Buffer.from(payload).toString()).signal);
    else if (type === Message.COMMAND) this.#takeCommand(payload);
    else if (type === Message.STDIN) this.#takeStdin(payload);
    else if (type === Message.STDIN_EOF) this.#stdinEnded = true;
    else throw new Error(`a run got type ${type}`);
    const isWhole = this.#commandBytes === this.request.command_bytes;
    if (type !== Message.KILL && isWhole && this.#stdinEnded === this.request.stdin) this.#onReady(this);
  }

  #takeCommand(payload: Uint8Array): void {
    this.#command.push(payload);
    this.#commandBytes += payload.byteLength;
  }

  #takeStdin(payload: Uint8Array): void {
    this.#stdin.push(payload);
    if (this.#grantsStdin) this.grant(payload.byteLength);
  }

  grant(bytes: number): void {
    this.peer.sendFrame(Message.CREDIT, this.stream, encodeCredit(bytes));
  }

  stdout(bytes: string | Uint8Array): void {
    this.peer.sendFrame(Message.STDOUT, this.stream, Buffer.from(bytes));
  }

  stderr(bytes: string | Uint8Array): void {
    this.peer.sendFrame(Message.STDERR, this.stream, Buffer.from(bytes));
  }

  /** Ends the run. The defaults are those of a command that succeeded without output. */
  exit(members: Partial<Record<keyof ExitReply, unknown>> = {}): void {
    this.peer.sendJson(Message.EXIT, this.stream, { ...SUCCESS, ...members });
  }

  refuse(code: string, errno: string | null = null, message = "no"): void {
    this.peer.sendJson(Message.ERROR, this.stream, { code, errno, message });
  }
}

export const SUCCESS: ExitReply = {
  exit_code: 0,
  signal: null,
  timed_out: false,
  killed: false,
  oom_killed: false,
  pids_exhausted: false,
  overlay_full: false,
  duration_us: 1000,
  background: 0,
  stdout_bytes: 0,
  stdout_head_bytes: 0,
  stdout_path: null,
  stdout_spool_complete: false,
  stderr_bytes: 0,
  stderr_head_bytes: 0,
  stderr_path: null,
  stderr_spool_complete: false,
};
