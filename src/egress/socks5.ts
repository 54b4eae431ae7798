import { type Destination, parseDestination } from "./destination.ts";
import type { EgressErrorCode } from "./egress-error.ts";

/** RFC 1928 */
export const SOCKS_VERSION = 5;
const NO_AUTHENTICATION = 0;
const CONNECT = 1;
const [IPV4, DOMAIN, IPV6] = [1, 3, 4];
const REPLY = { done: 0, failed: 1, denied: 2, hostUnreachable: 4, badCommand: 7, badAddressType: 8 };

export type SocksAnswer<Value> =
  | { state: "more" }
  /** `length` bytes were read */
  | { state: "ok"; value: Value; length: number }
  /** `reply` says it to the client */
  | { state: "invalid"; why: string; reply: Uint8Array };

export const METHOD_CHOSEN = Uint8Array.of(SOCKS_VERSION, NO_AUTHENTICATION);
const NO_METHOD = Uint8Array.of(SOCKS_VERSION, 0xff);

/** The client's first message, 257 bytes at most. Only a client that can do without a password is served. */
export function readGreeting(bytes: Uint8Array): SocksAnswer<null> {
  const count = bytes[1];
  if (bytes.byteLength > 0 && bytes[0] !== SOCKS_VERSION)
    return { state: "invalid", why: "the SOCKS version is not 5", reply: NO_METHOD };
  if (count === undefined || bytes.byteLength < 2 + count) return { state: "more" };
  if (!bytes.subarray(2, 2 + count).includes(NO_AUTHENTICATION))
    return { state: "invalid", why: "the SOCKS client wants to authenticate", reply: NO_METHOD };
  return { state: "ok", value: null, length: 2 + count };
}

/** The client's second message, 262 bytes at most. */
export function readConnect(bytes: Uint8Array): SocksAnswer<Destination> {
  const [version = SOCKS_VERSION, command = CONNECT, reserved = 0, type] = bytes;
  if (version !== SOCKS_VERSION || reserved !== 0)
    return invalid("the SOCKS request is malformed", REPLY.failed);
  if (command !== CONNECT) return invalid("of SOCKS only CONNECT is served", REPLY.badCommand);
  if (type === undefined) return { state: "more" };
  const addressBytes = type === IPV4 ? 4 : type === IPV6 ? 16 : type === DOMAIN ? bytes[4] : 0;
  if (addressBytes === undefined) return { state: "more" };
  if (addressBytes === 0) return invalid("the SOCKS request has no address", REPLY.badAddressType);
  const start = type === DOMAIN ? 5 : 4;
  const length = start + addressBytes + 2;
  if (bytes.byteLength < length) return { state: "more" };
  const address = Buffer.from(bytes.subarray(start, start + addressBytes));
  const port = Buffer.from(bytes).readUInt16BE(length - 2);
  const value = parseDestination(hostOf(type, address), port);
  if (!value) return invalid("the SOCKS request names no host", REPLY.failed);
  return { state: "ok", value, length };
}

function hostOf(type: number, address: Buffer): string {
  if (type === DOMAIN) return address.toString("latin1");
  if (type === IPV4) return address.join(".");
  return Array.from({ length: 8 }, (_, at) => address.readUInt16BE(2 * at).toString(16)).join(":");
}

export const CONNECTED_REPLY = reply(REPLY.done);

/** The reply that comes nearest to the reason. */
export function refusalReply(code: EgressErrorCode): Uint8Array {
  if (code === "unresolved" || code === "unreachable" || code === "connect_timeout")
    return reply(REPLY.hostUnreachable);
  return reply(code === "internal_error" || code === "bad_request" ? REPLY.failed : REPLY.denied);
}

function invalid(why: string, code: number): SocksAnswer<never> {
  return { state: "invalid", why, reply: reply(code) };
}

/** With 0.0.0.0:0 as the address bound, which no client needs. */
function reply(code: number): Uint8Array {
  return Uint8Array.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}
