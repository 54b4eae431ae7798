import { stat } from "node:fs/promises";
import type { Socket } from "bun";
import { connectToSocketFile } from "../base/socket-file.ts";
import { connectionFailure, refusedBeforeConnect } from "./connection-failure.ts";
import type { ConnectOptions, FrameConnection } from "./frame-connection.ts";
import { connectLine, type HandshakeAnswer, HandshakeReader } from "./handshake.ts";
import { TwinConnection } from "./twin-connection.ts";
import type { VsockErrorCode } from "./vsock-error.ts";

/** How long to wait before another try when the peer's backlog is full, in `ms` */
const BACKLOG_RETRY_MS = 10;

/**
 * `ConnectFrames` in TypeScript, for where the addon cannot be loaded.
 * `highWaterBytes` has no work here: a paused Bun socket is not read at all.
 */
export function connectTwin(options: ConnectOptions): Promise<FrameConnection> {
  return new TwinAttempt(options).run();
}

class TwinAttempt {
  readonly #options: ConnectOptions;
  readonly #outcome = Promise.withResolvers<FrameConnection>();
  readonly #reader = new HandshakeReader();
  #socket: Socket<unknown> | null = null;
  #connection: TwinConnection | null = null;
  #isSettled = false;

  constructor(options: ConnectOptions) {
    this.#options = options;
  }

  async run(): Promise<FrameConnection> {
    const { path, signal, deadlineMs } = this.#options;
    const refusal = refusedBeforeConnect(path, signal);
    if (refusal !== null) throw refusal;
    const onAbort = () => this.#fail("aborted", signal?.reason);
    const deadline = setTimeout(() => this.#fail("handshake_timeout"), deadlineMs);
    signal?.addEventListener("abort", onAbort);
    try {
      void this.#connect();
      return await this.#outcome.promise;
    } finally {
      clearTimeout(deadline);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async #connect(): Promise<void> {
    try {
      if (!(await isOwnSocketFile(this.#options.path))) this.#fail("peer_refused");
      while (!this.#isSettled && !(await this.#isAccepted())) await Bun.sleep(BACKLOG_RETRY_MS);
    } catch (cause) {
      this.#fail("connect_failed", cause);
    }
  }

  /** One try; false when the backlog is full. */
  async #isAccepted(): Promise<boolean> {
    try {
      await connectToSocketFile(this.#options.path, (unix) =>
        Bun.connect({
          unix,
          socket: {
            binaryType: "uint8array",
            open: (socket) => this.#onOpen(socket),
            data: (_socket, bytes: Uint8Array) => this.#onData(bytes),
            drain: () => this.#connection?.onWritable(),
            close: (_socket, cause) => this.#onSocketClose(cause),
            error: (_socket, cause) => this.#onSocketClose(cause),
          },
        }),
      );
      return true;
    } catch (cause) {
      if (cause instanceof Error && "code" in cause && cause.code === "EAGAIN") return false;
      throw cause;
    }
  }

  #onOpen(socket: Socket<unknown>): void {
    this.#socket = socket;
    if (this.#isSettled) socket.terminate();
    else socket.write(connectLine(this.#options.port));
  }

  #onData(bytes: Uint8Array): void {
    if (this.#connection !== null) this.#connection.onData(bytes);
    else if (!this.#isSettled) this.#onAnswer(this.#reader.push(bytes));
  }

  #onAnswer(answer: HandshakeAnswer): void {
    if (answer.state === "ok") this.#open(answer.rest);
    else if (answer.state !== "more") this.#fail(answer.state);
  }

  #open(firstBytes: Uint8Array): void {
    this.#isSettled = true;
    const connection = new TwinConnection(this.#socket!, this.#options.path, this.#options.handler);
    this.#connection = connection;
    connection.onData(firstBytes);
    this.#outcome.resolve(connection);
    // Frames that came with the answer wait until the caller holds the connection.
    setImmediate(() => connection.start());
  }

  #onSocketClose(cause: unknown): void {
    if (this.#connection !== null) this.#connection.onSocketClose(cause);
    else this.#fail("handshake_closed", cause);
  }

  #fail(code: VsockErrorCode, cause?: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#outcome.reject(connectionFailure(code, this.#options.path, cause));
    this.#socket?.terminate();
  }
}

/**
 * Whether the socket file is ours or root's. The addon asks the kernel who is at the other end (SO_PEERCRED);
 * Bun does not offer that, and the owner of the file is the closest there is: only they could have bound it.
 */
async function isOwnSocketFile(path: string): Promise<boolean> {
  const { uid } = await stat(path);
  return uid === 0 || uid === process.getuid?.();
}
