import { VsockError, type VsockErrorCode } from "./vsock-error.ts";

/** Longest AF_UNIX path Linux takes, in bytes without the closing NUL */
export const MAX_SOCKET_PATH_BYTES = 107;

const SENTENCES: Record<VsockErrorCode, (path: string) => string> = {
  connect_failed: (path) =>
    `Cannot connect to ${path}: nothing accepts connections there; check that the VMM is running.`,
  handshake_timeout: (path) =>
    `The peer of ${path} did not answer CONNECT in time; check that the agent is running, or allow more time.`,
  handshake_closed: (path) =>
    `The peer of ${path} closed the connection before it answered CONNECT; check the VMM's log.`,
  handshake_oversized: (path) =>
    `The peer of ${path} answered CONNECT with more than 128 bytes and no newline; it is not our agent.`,
  handshake_rejected: (path) =>
    `The peer of ${path} answered CONNECT with a line that is not "OK <number>"; connect again, or replace the clone.`,
  peer_refused: (path) =>
    `The socket ${path} belongs to a user who is neither us nor root; check who created it.`,
  aborted: (path) => `The attempt to connect to ${path} was cancelled by the caller.`,
  frame_invalid: (path) =>
    `A frame on ${path} is outside the limits of 5 bytes to 1 MiB; the connection cannot go on.`,
  connection_lost: (path) =>
    `The connection to ${path} was lost: the peer ended it; check whether the VMM is still running.`,
  closed: (path) => `The connection to ${path} is closed; open a new one.`,
};

/** The error for `code`, worded the same whichever carrier meets it. */
export function connectionFailure(code: VsockErrorCode, path: string, cause?: unknown): VsockError {
  return new VsockError(code, SENTENCES[code](path), cause);
}

/** The failure a connect attempt can know before it starts, or null. */
export function refusedBeforeConnect(path: string, signal: AbortSignal | undefined): VsockError | null {
  if (signal?.aborted) return connectionFailure("aborted", path, signal.reason);
  const pathBytes = Buffer.byteLength(path);
  if (pathBytes > MAX_SOCKET_PATH_BYTES || path.includes("\0") || pathBytes === 0) {
    const cause = new RangeError(`a socket path has 1 to ${MAX_SOCKET_PATH_BYTES} bytes, not ${pathBytes}`);
    return connectionFailure("connect_failed", path, cause);
  }
  return null;
}
