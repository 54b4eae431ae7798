import { within } from "../base/wait.ts";
import { connectFrames } from "../vsock/connect.ts";
import type { ConnectFrames, Frame, FrameConnection } from "../vsock/frame-connection.ts";
import { VsockError } from "../vsock/vsock-error.ts";
import { AgentError } from "./agent-error.ts";
import {
  AGENT_PORT,
  decodeDone,
  decodeJson,
  encodeJson,
  type HelloReply,
  helloReply,
  Message,
  PROTOCOL_VERSION,
} from "./agent-protocol.ts";
import { GuestTime } from "./guest-time.ts";
import { type AcceptStream, type StreamHandler, StreamTable } from "./stream-table.ts";

/** The agent answers at once. */
const HOLD_DEADLINE_MS = 10_000;
/** Of many machines that go on together each has little of the processors at first */
const RELEASE_DEADLINE_MS = 30_000;

export interface AgentConnectOptions {
  /** The session's AF_UNIX socket */
  path: string;
  /** Time for connect, handshake and HELLO together, in `ms` */
  deadlineMs: number;
  signal?: AbortSignal;
  /** Called once when the connection ends without `close` */
  onLost?(error: AgentError): void;
  /** How frames travel; the default picks native or twin */
  connect?: ConnectFrames;
}

/** The host's end of one agent connection: gives out streams and routes their frames. */
export class AgentClient implements Disposable {
  /** Deadlines of its answers count in it; whoever stops the machine stops it too */
  readonly time = new GuestTime();
  readonly #streams = new StreamTable();
  readonly #drained: (() => void)[] = [];
  readonly #onLost: ((error: AgentError) => void) | undefined;
  #connection: FrameConnection | null = null;
  /** Frames that wait for `release`; null while nothing is held */
  #heldBack: { type: number; stream: number; payload: Uint8Array | undefined }[] | null = null;
  #nextStream = 1;
  #isFull = false;
  #ended: AgentError | null = null;
  hello!: HelloReply;

  private constructor(options: AgentConnectOptions) {
    this.#onLost = options.onLost;
  }

  static async connect(options: AgentConnectOptions): Promise<AgentClient> {
    const client = new AgentClient(options);
    const startedAt = performance.now();
    try {
      client.#connection = await (options.connect ?? connectFrames)({
        path: options.path,
        port: AGENT_PORT,
        deadlineMs: options.deadlineMs,
        ...(options.signal && { signal: options.signal }),
        handler: {
          onFrames: (frames) => client.#dispatch(frames),
          onClose: (error) => client.#end(error),
          onDrain: () => client.#wakeSenders(),
        },
      });
      const leftMs = Math.max(1, options.deadlineMs - (performance.now() - startedAt));
      client.hello = await client.#greet(leftMs, options.signal);
      return client;
    } catch (error) {
      client.close();
      if (error instanceof AgentError) throw error;
      const message = `the agent does not answer: ${(error as Error).message}`;
      throw new AgentError(options.signal?.aborted ? "aborted" : "agent_lost", message, { cause: error });
    }
  }

  async #greet(deadlineMs: number, signal: AbortSignal | undefined): Promise<HelloReply> {
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const reply = this.#answer(0, (payload) => decodeJson(helloReply, payload));
    this.send(Message.HELLO, 0, encodeJson({ protocol: PROTOCOL_VERSION, nonce }));
    const hello = await within(reply, deadlineMs, "the agent's hello", signal);
    if (hello.nonce !== nonce)
      throw new AgentError("agent_invalid", "the agent answered an earlier connection's hello");
    if (hello.protocol !== PROTOCOL_VERSION) {
      throw new AgentError(
        "agent_mismatch",
        `the agent speaks protocol ${hello.protocol}, this binary ${PROTOCOL_VERSION}; rebuild the image and the base`,
      );
    }
    return hello;
  }

  /** Sends one request on a stream of its own and resolves with its OK. */
  async request<T>(
    type: number,
    body: object,
    decode: (payload: Uint8Array) => T,
    deadlineMs: number,
    signal?: AbortSignal,
  ): Promise<T> {
    const stream = this.#nextStream++;
    const reply = this.#answer(stream, decode);
    this.send(type, stream, encodeJson(body));
    try {
      return await this.time.within(reply, deadlineMs, "the agent's answer", signal);
    } catch (error) {
      this.endStream(stream);
      throw error instanceof AgentError
        ? error
        : new AgentError(signal?.aborted ? "aborted" : "agent_silent", "the agent did not answer in time", {
            cause: error,
          });
    }
  }

  #answer<T>(stream: number, decode: (payload: Uint8Array) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    promise.catch(() => undefined);
    this.#listen(stream, {
      onFrame: (frame) => {
        if (frame.type !== Message.OK) throw new RangeError(`type ${frame.type} is no answer`);
        const answer = decode(frame.payload);
        this.endStream(stream);
        resolve(answer);
      },
      onError: reject,
    });
    return promise;
  }

  /**
   * Makes the guest ready to be copied (HOLD in docs/wire/agent.md). Once it resolves no byte is under way in either
   * direction; what is sent meanwhile waits for `release`.
   */
  async hold(): Promise<void> {
    const held = this.request(Message.HOLD, {}, decodeDone, HOLD_DEADLINE_MS);
    this.#heldBack = [];
    try {
      await held;
    } catch (error) {
      this.#sendHeldBack();
      throw error;
    }
  }

  /** Lets the guest go on after a pause of `pausedUs`, in microseconds. */
  async release(pausedUs: number): Promise<void> {
    const waiting = this.#heldBack;
    this.#heldBack = null;
    const body = { paused_us: Math.round(pausedUs) };
    const released = this.request(Message.RELEASE, body, decodeDone, RELEASE_DEADLINE_MS);
    released.catch(() => undefined);
    this.#heldBack = waiting;
    this.#sendHeldBack();
    await released;
  }

  /** From now on the agent may open streams of its own; the last one to say so gets them. */
  acceptStreams(accept: AcceptStream): void {
    this.#streams.acceptWith(accept);
  }

  /** Whether it was the last one to say so */
  acceptsWith(accept: AcceptStream): boolean {
    return this.#streams.acceptsWith(accept);
  }

  openStream(handler: StreamHandler): number {
    const stream = this.#nextStream++;
    this.#listen(stream, handler);
    return stream;
  }

  #listen(stream: number, handler: StreamHandler): void {
    if (this.#ended) throw this.#ended;
    this.#streams.add(stream, handler);
  }

  endStream(stream: number): void {
    this.#streams.end(stream);
  }

  /** False when the caller should wait for `drained` before it sends more. */
  send(type: number, stream: number, payload?: Uint8Array): boolean {
    if (this.#ended || !this.#connection)
      throw this.#ended ?? new AgentError("agent_lost", "the agent is not connected");
    if (this.#heldBack) {
      this.#heldBack.push({ type, stream, payload });
      return false;
    }
    try {
      const isAccepted = this.#connection.send(type, stream, payload);
      if (!isAccepted) this.#isFull = true;
      return isAccepted;
    } catch (error) {
      // The connection knows of its end a moment before it reports it.
      throw new AgentError("agent_lost", "the connection to the agent does not take frames", {
        cause: error,
      });
    }
  }

  /** True from a `send` that was false until the connection has drained */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Bytes that wait for the kernel */
  get pendingBytes(): number {
    return this.#connection?.pendingBytes ?? 0;
  }

  /** Resolves when the kernel took what was queued, or when the connection ended. */
  drained(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  close(): void {
    this.#ended ??= new AgentError("agent_lost", "the connection to the agent was closed");
    this.#connection?.close();
    this.#failStreams(this.#ended);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #dispatch(frames: Frame[]): void {
    for (const frame of frames) {
      try {
        this.#streams.take(frame);
      } catch (error) {
        // Guest bytes that break the protocol cost the guest its connection, never the server.
        this.#invalid(error);
        return;
      }
    }
  }

  #invalid(cause: unknown): void {
    // First the cause, since closing reports an end of its own.
    this.#lose(new AgentError("agent_invalid", "the agent broke its protocol", { cause }));
    this.#connection?.close();
  }

  #end(error: Error | null): void {
    if (error instanceof VsockError && error.code === "frame_invalid") {
      this.#lose(new AgentError("agent_invalid", "the agent broke its protocol", { cause: error }));
      return;
    }
    this.#lose(new AgentError("agent_lost", "the connection to the agent ended", { cause: error }));
  }

  #lose(error: AgentError): void {
    if (this.#ended) return;
    this.#ended = error;
    this.#failStreams(error);
    this.#onLost?.(error);
  }

  #failStreams(error: AgentError): void {
    this.#streams.failAll(error);
    this.#wakeSenders();
  }

  /** A lost connection has told its streams already. */
  #sendHeldBack(): void {
    const waiting = this.#heldBack ?? [];
    this.#heldBack = null;
    if (this.#ended) return;
    for (const { type, stream, payload } of waiting) this.send(type, stream, payload);
    this.#wakeSenders();
  }

  #wakeSenders(): void {
    if (this.#heldBack && !this.#ended) return;
    this.#isFull = false;
    for (const wake of this.#drained.splice(0)) wake();
  }
}
