import { type IpAddress, parseIp } from "./ip-address.ts";

/** Where a guest wants to go: a name in canonical form, or an address. */
export interface Destination {
  /** Lower case, without a dot at the end; null when it is an address */
  name: string | null;
  address: IpAddress | null;
  port: number;
}

/** The engine's own door, served by `EgressGate` and never resolved */
export const INTERNAL_NAME = "ignition.internal";

const MAX_NAME_CHARS = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
/** What some resolvers take for an IPv4 address: 127.1, 0x7f.0.0.1, 2130706433 */
const NUMERIC_LABEL = /^(?:\d+|0x[0-9a-f]*)$/;

/** A host name in canonical form, or null for what is none: other characters, too long, or a number in disguise. */
export function parseName(text: string): string | null {
  const name = (text.endsWith(".") ? text.slice(0, -1) : text).toLowerCase();
  if (name.length > MAX_NAME_CHARS) return null;
  const labels = name.split(".");
  if (!labels.every((label) => LABEL.test(label))) return null;
  return NUMERIC_LABEL.test(labels.at(-1)!) ? null : name;
}

/** Host as a name, an IPv4 or an IPv6 address without brackets. Null for what is none of them. */
export function parseDestination(host: string, port: number): Destination | null {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return null;
  const address = parseIp(host);
  if (address) return { name: null, address, port };
  const name = parseName(host);
  return name === null ? null : { name, address: null, port };
}

/** `host:port`, `[v6]:port`, or without a port when there is a default. Null for anything else. */
export function parseAuthority(text: string, defaultPort: number | null): Destination | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^[\]:@/?#\s]+))(?::(\d{1,5}))?$/.exec(text);
  if (!match) return null;
  const [, v6, host, digits] = match;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (port === null || (v6 !== undefined && !v6.includes(":"))) return null;
  return parseDestination(v6 ?? host!, port);
}

/** `host:port` as written in logs, sentences and Host headers; harmless, since only canonical forms get here. */
export function textOf(destination: Destination, defaultPort: number | null = null): string {
  const { name, address, port } = destination;
  const host = name ?? (address!.kind() === "ipv6" ? `[${address}]` : `${address}`);
  return port === defaultPort ? host : `${host}:${port}`;
}

export function isInternal({ name, port }: Destination): boolean {
  return name === INTERNAL_NAME && port === 80;
}
