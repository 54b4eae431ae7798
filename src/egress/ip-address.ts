import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** Network and the length of its prefix */
export type Cidr = [network: IpAddress, prefixBits: number];

/** RFC 6052: the last 32 bits are an IPv4 address that a translator connects to */
const NAT64 = cidrOf("64:ff9b::/96");
/** IANA has handed out nothing else for unicast */
const GLOBAL_UNICAST = cidrOf("2000::/3");
/** Not in ipaddr.js: the metadata service of Azure, and RFC 9637's addresses for documentation */
const NOT_PUBLIC = [cidrOf("168.63.129.16/32"), cidrOf("3fff::/20")];

/** An address in its usual notation, or null. One that is IPv4-mapped comes back as the IPv4 address it means. */
export function parseIp(text: string): IpAddress | null {
  if (isIP(text) === 0 || text.includes("%")) return null;
  return ipaddr.process(text);
}

/** `network/bits`, or null. Bits behind the prefix are ignored; an IPv4-mapped network is written as IPv4. */
export function parseCidr(text: string): Cidr | null {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  if (isIP(address) === 0 || address.includes("%")) return null;
  const network = ipaddr.parse(address);
  const prefixBits = Number(bits);
  if (prefixBits > (network.kind() === "ipv4" ? 32 : 128)) return null;
  return network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() ? null : [network, prefixBits];
}

export function isWithin(address: IpAddress, cidrs: readonly Cidr[]): boolean {
  return cidrs.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits));
}

/** The IPv4 address that a translator connects to for this one; else the address itself. */
export function behindNat64(address: IpAddress): IpAddress {
  if (!isWithin(address, [NAT64])) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

/**
 * Whether the address is one of the public internet: not private, loopback, link-local, carrier-grade NAT, multicast,
 * reserved, a metadata service, or a transition form (6to4, Teredo, IPv4-compatible) that hides another address.
 */
export function isPublic(address: IpAddress): boolean {
  if (isWithin(address, NOT_PUBLIC)) return false;
  if (address instanceof ipaddr.IPv4) return address.range() === "unicast";
  if (isWithin(address, [NAT64])) return isPublic(behindNat64(address));
  return isWithin(address, [GLOBAL_UNICAST]) && address.range() === "unicast";
}

function cidrOf(text: string): Cidr {
  return ipaddr.parseCIDR(text);
}
