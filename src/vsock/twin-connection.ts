import type { Socket } from "bun";
import { connectionFailure } from "./connection-failure.ts";
import { Delivery } from "./delivery.ts";
import { FrameDecoder, isPayloadSize } from "./frame-codec.ts";
import { type FrameConnection, type FrameHandler, SEND_HIGH_WATER_BYTES } from "./frame-connection.ts";
import { SendBatch } from "./send-batch.ts";

const NO_PAYLOAD = new Uint8Array(0);

/** A handshaken connection over a Bun socket. Whoever owns the socket's events passes them on to it. */
export class TwinConnection implements FrameConnection {
  readonly #socket: Socket<unknown>;
  readonly #path: string;
  readonly #delivery: Delivery;
  readonly #decoder = new FrameDecoder();
  readonly #batch = new SendBatch((batch, payload) => this.#write(batch, payload));
  /** Bytes the kernel did not take yet, oldest first */
  #outbox: Uint8Array[] = [];
  #outboxBytes = 0;
  #owesDrain = false;

  /** Delivers nothing until `start`. */
  constructor(socket: Socket<unknown>, path: string, handler: FrameHandler) {
    this.#socket = socket;
    this.#path = path;
    this.#delivery = new Delivery(handler, () => socket.resume());
    socket.pause();
  }

  start(): void {
    this.#delivery.start();
  }

  get pendingBytes(): number {
    return this.#outboxBytes + this.#batch.usedBytes;
  }

  send(type: number, stream: number, payload: Uint8Array = NO_PAYLOAD): boolean {
    if (this.#delivery.hasEnded) throw connectionFailure("closed", this.#path, this.#delivery.endError);
    if (!isPayloadSize(payload.byteLength)) {
      const cause = new RangeError(`payload of ${payload.byteLength} bytes`);
      throw connectionFailure("frame_invalid", this.#path, cause);
    }
    this.#batch.add(type, stream, payload);
    if (this.pendingBytes > SEND_HIGH_WATER_BYTES) this.#batch.flush();
    if (this.pendingBytes <= SEND_HIGH_WATER_BYTES) return true;
    this.#owesDrain = true;
    return false;
  }

  pause(): void {
    this.#delivery.pause();
    if (!this.#delivery.hasEnded) this.#socket.pause();
  }

  resume(): void {
    this.#delivery.resume();
  }

  close(): void {
    const isOpen = !this.#delivery.hasEnded;
    if (isOpen) this.#batch.flush();
    this.#dropOutbox();
    // Not now: Bun reports the socket's end, and runs microtasks, from inside the call.
    if (isOpen) queueMicrotask(() => this.#socket.terminate());
    this.#delivery.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Event: the socket brought bytes. */
  onData(bytes: Uint8Array): void {
    if (this.#delivery.hasEnded) return;
    const frames = this.#decoder.push(bytes);
    if (frames.length > 0) this.#delivery.onFrames(frames);
    const { invalidLength } = this.#decoder;
    if (invalidLength === null || this.#delivery.hasEnded) return;
    this.#end("frame_invalid", new RangeError(`frame length ${invalidLength}`));
    this.#socket.terminate();
  }

  /** Event: the socket takes bytes again. */
  onWritable(): void {
    while (this.#outbox.length > 0) {
      const piece = this.#outbox[0]!;
      const written = this.#socket.write(piece);
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
    if (!this.#owesDrain) return;
    this.#owesDrain = false;
    this.#delivery.onDrain();
  }

  /** Event: the socket is gone. */
  onSocketClose(cause: unknown): void {
    const place = this.#decoder.isMidFrame ? "the stream ended inside a frame" : "the stream ended";
    this.#end("connection_lost", cause ?? new Error(place));
  }

  #end(code: "frame_invalid" | "connection_lost", cause: unknown): void {
    this.#dropOutbox();
    this.#delivery.onEnd(connectionFailure(code, this.#path, cause));
  }

  #write(batch: Uint8Array, payload: Uint8Array | null): void {
    if (this.#delivery.hasEnded) return;
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
