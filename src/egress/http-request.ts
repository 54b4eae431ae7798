import { type Destination, isInternal, parseAuthority, textOf } from "./destination.ts";
import { EgressError } from "./egress-error.ts";
import { type BodyFraming, badRequest, type RequestHead, valuesOf } from "./http-head.ts";

const HTTP_PORT = 80;
/** RFC 9110, section 7.6.1, and what belongs to the proxy */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);
/** What Connection must not take away from the next server */
const END_TO_END = new Set(["host", "content-length", "transfer-encoding"]);
const ABSOLUTE_FORM = /^http:\/\/([^/?#]+)([/?][^#]*)?$/i;

/** A request for the server at `destination`. */
export interface HttpRequest {
  method: string;
  destination: Destination;
  /** From the root, with the query */
  path: string;
  framing: BodyFraming;
  /** Those that go on to the server */
  fields: RequestHead["fields"];
  minorVersion: 0 | 1;
  /** The client wants no request after this one */
  isLast: boolean;
}

/** The target of a CONNECT. Throws `bad_request` or `host_mismatch`. */
export function readConnectTarget(head: RequestHead): Destination {
  const destination = parseAuthority(head.target, null);
  if (!destination) throw badRequest("CONNECT takes host:port");
  if (head.framing.kind !== "length" || head.framing.bytes > 0) throw badRequest("CONNECT takes no body");
  checkHost(head, destination, destination.port);
  return destination;
}

/**
 * A request to the proxy, in absolute form; or inside a tunnel to `fixed`, in origin form. The Host field must name
 * the same server as the target. Throws `bad_request` or `host_mismatch`.
 */
export function readHttpRequest(head: RequestHead, fixed: Destination | null): HttpRequest {
  if (head.method === "CONNECT") throw badRequest("CONNECT is the first request of a connection or none");
  const { destination, path } = fixed ? inTunnel(head, fixed) : toProxy(head);
  checkHost(head, destination, HTTP_PORT);
  const options = valuesOf(head, "connection").flatMap((value) => value.toLowerCase().split(/[ \t]*,[ \t]*/));
  if (options.some((option) => END_TO_END.has(option)))
    throw badRequest("its Connection field names one that is for the server");
  const dropped = new Set([...HOP_BY_HOP, ...options]);
  return {
    method: head.method,
    destination,
    path,
    framing: head.framing,
    fields: head.fields.filter(([name]) => name !== "host" && !dropped.has(name)),
    minorVersion: head.minorVersion,
    isLast: options.includes("close") || (head.minorVersion === 0 && !options.includes("keep-alive")),
  };
}

/** The head as the server gets it: made of what was understood, never of the bytes that came. */
export function encodeHead(request: HttpRequest): Uint8Array {
  const { method, path, destination, fields, minorVersion, isLast } = request;
  const lines = [`${method} ${path} HTTP/1.${minorVersion}`, `host: ${textOf(destination, HTTP_PORT)}`];
  for (const [name, value] of fields) lines.push(`${name}: ${value}`);
  if (isLast) lines.push("connection: close");
  else if (minorVersion === 0) lines.push("connection: keep-alive");
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function toProxy(head: RequestHead): Pick<HttpRequest, "destination" | "path"> {
  const absolute = ABSOLUTE_FORM.exec(head.target);
  if (absolute) {
    const destination = parseAuthority(absolute[1]!, HTTP_PORT);
    if (!destination) throw badRequest("its target names no host");
    return { destination, path: fromRoot(absolute[2] ?? "/") };
  }
  if (/^https:/i.test(head.target)) throw badRequest("for https: a proxy takes CONNECT");
  const host = parseAuthority(valuesOf(head, "host")[0] ?? "", HTTP_PORT);
  if (host && isInternal(host)) return inTunnel(head, host);
  throw badRequest("this is a proxy, which takes CONNECT host:port or an absolute http: URL");
}

function inTunnel(head: RequestHead, destination: Destination): Pick<HttpRequest, "destination" | "path"> {
  if (!/^\/[^#]*$/.test(head.target)) throw badRequest("its target is no path");
  return { destination, path: head.target };
}

function fromRoot(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

function checkHost(head: RequestHead, destination: Destination, defaultPort: number): void {
  const [host] = valuesOf(head, "host");
  if (host === undefined) return;
  const named = parseAuthority(host, defaultPort);
  if (named && textOf(named) === textOf(destination)) return;
  throw new EgressError(
    "host_mismatch",
    `the Host field names another server than the request's target ${textOf(destination)}`,
  );
}
