/** What native/binding.cc exports. One copy per JavaScript environment. */
export interface NativeAddon {
  /** Starts the I/O thread; called once. Returns an errno or 0. */
  start(onReports: (words: Uint32Array, buffers: ArrayBuffer[]) => void): number;
  /** Returns the connection's id, or a negative errno. Delivery starts paused. */
  connect(path: string, port: number, deadlineMs: number, highWaterBytes: number): number;
  /** Returns the bytes queued, or a negative errno once the connection ended. Keeps neither array. */
  send(id: number, head: Uint8Array, payload: Uint8Array | null): number;
  pending(id: number): number;
  setPaused(id: number, isPaused: boolean): void;
  /** No report follows. */
  close(id: number): void;
  /** Rate of the time stamp counter in `kHz`, measured for 30 ms; 0 where there is none */
  tscKhz(): number;
}

/** Words per record in a report: kind and detail, connection id, then four that depend on the kind */
export const RECORD_WORDS = 6;

/** Kinds of record, in the low byte of its first word; see native/binding.cc. */
export const RECORD = { frame: 0, opened: 1, drained: 2, ended: 3 } as const;

/** Codes of `enum conn_end` in native/core/reactor.h, by number */
export const END_CODES = [
  null,
  "connect_failed",
  "handshake_timeout",
  "handshake_closed",
  "handshake_oversized",
  "handshake_rejected",
  "peer_refused",
  "frame_invalid",
  "connection_lost",
] as const;
