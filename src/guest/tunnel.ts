/**
 * One TCP connection carried over the agent's connection.
 *
 * Both directions are held back by whoever reads: at most `TUNNEL_WINDOW_BYTES` wait on each side. A reset, the loss of
 * the agent and `abort` make both streams fail with the cause.
 */
export interface Tunnel {
  /** What the guest's side sends; ends when that side does. Cancelling it is no reset: what comes is dropped. */
  readonly readable: ReadableStream<Uint8Array>;
  /** What the guest's side gets. Closing it ends this direction only; the other goes on. */
  readonly writable: WritableStream<Uint8Array>;
  /** Resets the connection in the guest. Nothing happens once both directions have ended. */
  abort(reason: Error): void;
}
