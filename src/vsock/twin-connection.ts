import type { Socket } from "bun";
import { callHandler } from "./call-handler.ts";
import { connectionFailure } from "./connection-failure.ts";
import { FrameDecoder, isPayloadSize } from "./frame-codec.ts";
import {
  type Frame,
  type FrameConnection,
  type FrameHandler,
  SEND_HIGH_WATER_BYTES,
} from "./frame-connection.ts";
import { SendBatch } from "./send-batch.ts";
import type { VsockError } from "./vsock-error.ts";

const NO_PAYLOAD = new Uint8Array(0);

/** A handshaken connection over a Bun socket. Whoever owns the socket's events passes them on to it. */
export class TwinConnection implements FrameConnection {
  readonly #socket: Socket<unknown>;
  readonly #path: string;
  readonly #handler: FrameHandler;
  readonly #decoder = new FrameDecoder();
  readonly #batch = new SendBatch((batch, payload) => this.#write(batch, payload));
  /** Bytes the kernel did not take yet, oldest first */
  #outbox: Uint8Array[] = [];
  #outboxBytes = 0;
  #owesDrain = false;
  /** Frames held back while paused: what one read brought, since a paused socket is not read */
  #held: Frame[] = [];
  #isStarted = false;
  #isPaused = false;
  #end: { error: VsockError | null; isReported: boolean } | null = null;

  /** Delivers nothing until `start`. */
  constructor(socket: Socket<unknown>, path: string, handler: FrameHandler) {
    this.#socket = socket;
    this.#path = path;
    this.#handler = handler;
    socket.pause();
  }

  start(): void {
    this.#isStarted = true;
    this.#deliver();
  }

  get pendingBytes(): number {
    return this.#outboxBytes + this.#batch.usedBytes;
  }

  send(type: number, stream: number, payload: Uint8Array = NO_PAYLOAD): boolean {
    if (this.#end !== null) throw connectionFailure("closed", this.#path, this.#end.error ?? undefined);
    if (!isPayloadSize(payload.byteLength)) {
      const cause = new RangeError(`payload of ${payload.byteLength} bytes`);
      throw connectionFailure("frame_invalid", this.#path, cause);
    }
    this.#batch.add(type, stream, payload);
    if (this.pendingBytes <= SEND_HIGH_WATER_BYTES) return true;
    this.#owesDrain = true;
    return false;
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#end === null) this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    // Later, so that a handler is never called from inside its own `resume`.
    queueMicrotask(() => this.#deliver());
  }

  close(): void {
    if (this.#end?.isReported) return;
    if (this.#end === null) {
      this.#batch.flush();
      this.#socket.terminate();
    }
    this.#end = { error: null, isReported: false };
    this.#held = [];
    this.#isPaused = false;
    queueMicrotask(() => this.#deliver());
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Event: the socket brought bytes. */
  onData(bytes: Uint8Array): void {
    if (this.#end !== null) return;
    this.#held = this.#held.concat(this.#decoder.push(bytes));
    const { invalidLength } = this.#decoder;
    if (invalidLength !== null) {
      const cause = new RangeError(`frame length ${invalidLength}`);
      this.#end = { error: connectionFailure("frame_invalid", this.#path, cause), isReported: false };
      this.#socket.terminate();
    }
    this.#deliver();
  }

  /** Event: the socket takes bytes again. */
  onWritable(): void {
    while (this.#outbox.length > 0) {
      const piece = this.#outbox[0]!;
      const written = this.#end === null ? this.#socket.write(piece) : -1;
      if (written < 0) {
        this.#dropOutbox();
        return;
      }
      this.#outboxBytes -= written;
      if (written < piece.byteLength) {
        this.#outbox[0] = piece.subarray(written);
        return;
      }
      this.#outbox.shift();
    }
    if (!this.#owesDrain || this.#end !== null) return;
    this.#owesDrain = false;
    callHandler(() => this.#handler.onDrain?.());
  }

  /** Event: the socket is gone. */
  onSocketClose(cause: unknown): void {
    if (this.#end !== null) return;
    const place = this.#decoder.isMidFrame ? "the stream ended inside a frame" : "the stream ended";
    const error = connectionFailure("connection_lost", this.#path, cause ?? new Error(place));
    this.#end = { error, isReported: false };
    this.#deliver();
  }

  /** Frames that came before the end are delivered before it, so a paused connection ends when it resumes. */
  #deliver(): void {
    if (!this.#isStarted || this.#isPaused || this.#end?.isReported) return;
    const frames = this.#held;
    this.#held = [];
    if (frames.length > 0) callHandler(() => this.#handler.onFrames(frames));
    // The handler may have paused or closed the connection.
    if (this.#isPaused) return;
    if (this.#end === null) this.#socket.resume();
    else this.#reportEnd(this.#end);
  }

  #reportEnd(end: { error: VsockError | null; isReported: boolean }): void {
    if (end.isReported) return;
    end.isReported = true;
    this.#dropOutbox();
    callHandler(() => this.#handler.onClose(end.error));
  }

  #write(batch: Uint8Array, payload: Uint8Array | null): void {
    if (this.#end !== null) return;
    for (const piece of payload === null ? [batch] : [batch, payload]) {
      const written = this.#outbox.length > 0 ? 0 : Math.max(0, this.#socket.write(piece));
      if (written === piece.byteLength) continue;
      this.#outbox.push(piece.slice(written));
      this.#outboxBytes += piece.byteLength - written;
    }
  }

  #dropOutbox(): void {
    this.#batch.discard();
    this.#outbox = [];
    this.#outboxBytes = 0;
  }
}
