import { connectionFailure } from "./connection-failure.ts";
import { Delivery } from "./delivery.ts";
import { isPayloadSize } from "./frame-codec.ts";
import {
  type Frame,
  type FrameConnection,
  type FrameHandler,
  SEND_HIGH_WATER_BYTES,
} from "./frame-connection.ts";
import type { NativeAddon } from "./native-addon.ts";
import { SendBatch } from "./send-batch.ts";
import type { VsockError } from "./vsock-error.ts";

const NO_PAYLOAD = new Uint8Array(0);

/** A handshaken connection whose bytes the addon's I/O thread moves. */
export class NativeConnection implements FrameConnection {
  readonly #addon: NativeAddon;
  readonly #id: number;
  readonly #path: string;
  readonly #delivery: Delivery;
  readonly #batch = new SendBatch((batch, payload) => this.#write(batch, payload));
  /** Whether the addon holds frames back; it does at first */
  #isHeldBack = true;
  /** Bytes queued in the addon when it last said so */
  #queuedBytes = 0;

  constructor(addon: NativeAddon, id: number, path: string, handler: FrameHandler) {
    this.#addon = addon;
    this.#id = id;
    this.#path = path;
    this.#delivery = new Delivery(handler, () => this.#holdBack(false));
  }

  start(): void {
    this.#delivery.start();
  }

  get pendingBytes(): number {
    return this.#delivery.hasEnded ? 0 : this.#addon.pending(this.#id) + this.#batch.usedBytes;
  }

  send(type: number, stream: number, payload: Uint8Array = NO_PAYLOAD): boolean {
    if (this.#delivery.hasEnded) throw connectionFailure("closed", this.#path, this.#delivery.endError);
    if (!isPayloadSize(payload.byteLength)) {
      const cause = new RangeError(`payload of ${payload.byteLength} bytes`);
      throw connectionFailure("frame_invalid", this.#path, cause);
    }
    this.#batch.add(type, stream, payload);
    // The addon owes a drain only for what it saw, so the answer has to be its own.
    if (this.#queuedBytes + this.#batch.usedBytes > SEND_HIGH_WATER_BYTES) this.#batch.flush();
    return this.#queuedBytes <= SEND_HIGH_WATER_BYTES;
  }

  pause(): void {
    this.#delivery.pause();
    this.#holdBack(true);
  }

  resume(): void {
    this.#delivery.resume();
  }

  close(): void {
    if (!this.#delivery.hasEnded) {
      this.#batch.flush();
      this.#addon.close(this.#id);
    }
    this.#batch.discard();
    this.#delivery.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  onFrames(frames: Frame[]): void {
    this.#delivery.onFrames(frames);
  }

  /** Event: the addon's queue is empty again. */
  onDrained(): void {
    this.#queuedBytes = 0;
    this.#delivery.onDrain();
  }

  onEnded(error: VsockError): void {
    this.#batch.discard();
    this.#delivery.onEnd(error);
  }

  #write(batch: Uint8Array, payload: Uint8Array | null): void {
    if (this.#delivery.hasEnded) return;
    // A negative answer: the connection ended, and the report of that is on its way.
    this.#queuedBytes = Math.max(0, this.#addon.send(this.#id, batch, payload));
  }

  #holdBack(isHeldBack: boolean): void {
    if (this.#isHeldBack === isHeldBack || this.#delivery.hasEnded) return;
    this.#isHeldBack = isHeldBack;
    this.#addon.setPaused(this.#id, isHeldBack);
  }
}
