import { STATUS_CODES } from "node:http";
import type { EgressError, EgressErrorCode } from "./egress-error.ts";

export const HTTP_CONNECTED = Buffer.from("HTTP/1.1 200 Connection established\r\n\r\n");

const STATUSES: Partial<Record<EgressErrorCode, number>> = {
  bad_request: 400,
  host_mismatch: 400,
  handshake_timeout: 408,
  internal_error: 500,
  unresolved: 502,
  unreachable: 502,
  ended: 503,
  connect_timeout: 504,
};

/** An answer with the reason in a sentence, 403 unless the reason is no matter of policy. The last of its connection. */
export function httpRefusal({ code, message }: EgressError): Uint8Array {
  const status = STATUSES[code] ?? 403;
  const body = Buffer.from(`${message[0]!.toUpperCase()}${message.slice(1)}.\n`);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: text/plain; charset=utf-8",
    `content-length: ${body.byteLength}`,
    `x-egress-reason: ${code}`,
    "connection: close",
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}
