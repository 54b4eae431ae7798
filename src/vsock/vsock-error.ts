import { Fault } from "../base/fault.ts";

/** What can go wrong between connect and the end of a connection; see docs/wire/handshake.md. */
export type VsockErrorCode =
  | "connect_failed"
  | "handshake_timeout"
  | "handshake_closed"
  | "handshake_oversized"
  | "handshake_rejected"
  | "peer_refused"
  | "aborted"
  | "frame_invalid"
  | "connection_lost"
  | "closed";

export class VsockError extends Fault<VsockErrorCode> {}
