/** One frame, in either direction. Layout and limits: docs/wire/frames.md. */
export interface Frame {
  /** Message type, `u8`; meanings in docs/wire/agent.md */
  type: number;
  /** Stream the frame belongs to, `u32`; 0 is the connection itself */
  stream: number;
  /** Payload, at most `MAX_PAYLOAD_BYTES`; owned by whoever receives the frame */
  payload: Uint8Array;
}

/** How a connection reports what happens to it. Called on the JS thread, never after `onClose`. */
export interface FrameHandler {
  /** A batch of frames in the order they arrived, at least one */
  onFrames(frames: Frame[]): void;
  /** The last call. `error` is null when we closed it ourselves. */
  onClose(error: Error | null): void;
  /** All queued bytes left for the kernel after `send` returned false */
  onDrain?(): void;
}

export interface ConnectOptions {
  /** AF_UNIX socket path, at most 107 bytes */
  path: string;
  /** Port named in the CONNECT line; 7000 for the agent */
  port: number;
  /** Time for connect and handshake together, in `ms` */
  deadlineMs: number;
  /** Aborts the attempt; an open connection is not affected */
  signal?: AbortSignal;
  /** Undelivered received bytes above which reading stops, in `bytes` (default 8 MiB) */
  highWaterBytes?: number;
  handler: FrameHandler;
}

/** A handshaken connection that carries frames both ways. */
export interface FrameConnection extends Disposable {
  /**
   * Queues one frame; frames queued in the same tick leave together.
   * Returns false when more than `SEND_HIGH_WATER_BYTES` wait for the kernel: send more after `onDrain`.
   * Throws `VsockError` `frame_invalid` for an oversized payload and `closed` after the end.
   */
  send(type: number, stream: number, payload?: Uint8Array): boolean;
  /** Bytes queued and not yet accepted by the kernel */
  readonly pendingBytes: number;
  /** Stops and restarts delivery; what arrives meanwhile is bounded by the high-water mark */
  pause(): void;
  resume(): void;
  /** Ends the connection at once; `onClose(null)` follows */
  close(): void;
}

/** Connects, handshakes, and resolves with an open connection, or rejects with `VsockError`. */
export type ConnectFrames = (options: ConnectOptions) => Promise<FrameConnection>;

export const MAX_FRAME_BYTES = 1_048_576;
export const FRAME_OVERHEAD_BYTES = 5;
export const MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES;
export const SEND_HIGH_WATER_BYTES = 4 * 1_048_576;
