import { callHandler } from "./call-handler.ts";
import type { Frame, FrameHandler } from "./frame-connection.ts";

/**
 * Hands a connection's frames and its end to the handler: in order, not while paused, the end once and last.
 * Shared by both carriers, so that they cannot differ in it.
 */
export class Delivery {
  readonly #handler: FrameHandler;
  readonly #onFlowing: () => void;
  #held: Frame[] = [];
  #isStarted = false;
  #isPaused = false;
  #end: { error: Error | null; isReported: boolean } | null = null;

  /** `onFlowing` is called when everything is delivered and the carrier may bring more. */
  constructor(handler: FrameHandler, onFlowing: () => void) {
    this.#handler = handler;
    this.#onFlowing = onFlowing;
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /** Why the connection ended by itself */
  get endError(): Error | undefined {
    return this.#end?.error ?? undefined;
  }

  /** Lets delivery begin; until then everything is held. */
  start(): void {
    this.#isStarted = true;
    this.#deliver();
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Delivery goes on in a microtask, so that no handler is called from inside its own `resume`. */
  resume(): void {
    this.#isPaused = false;
    queueMicrotask(() => this.#deliver());
  }

  onFrames(frames: Frame[]): void {
    if (this.#end !== null) return;
    this.#held = this.#held.length === 0 ? frames : this.#held.concat(frames);
    this.#deliver();
  }

  onDrain(): void {
    if (this.#end === null) callHandler(() => this.#handler.onDrain?.());
  }

  /** The carrier lost the connection. Frames that came before are delivered first, so a pause holds the end back. */
  onEnd(error: Error): void {
    this.#end ??= { error, isReported: false };
    this.#deliver();
  }

  /** We closed the connection: what was not delivered never is, and no pause holds the end back. */
  close(): void {
    if (this.#end?.isReported) return;
    this.#end = { error: null, isReported: false };
    this.#held = [];
    this.#isStarted = true;
    this.resume();
  }

  #deliver(): void {
    if (!this.#isStarted || this.#isPaused || this.#end?.isReported) return;
    const frames = this.#held;
    this.#held = [];
    if (frames.length > 0) callHandler(() => this.#handler.onFrames(frames));
    // The handler may have paused or closed the connection.
    if (this.#isPaused) return;
    if (this.#end === null) this.#onFlowing();
    else this.#reportEnd(this.#end);
  }

  #reportEnd(end: { error: Error | null; isReported: boolean }): void {
    if (end.isReported) return;
    end.isReported = true;
    callHandler(() => this.#handler.onClose(end.error));
  }
}
