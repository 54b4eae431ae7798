import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type Cidr, parseCidr } from "./ip-address.ts";

/** A network said to be larger than any that machines are attached to is taken for the machine's address alone. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 32 };

/** The networks this machine is attached to, with its own addresses in them. */
export function ownNetworks(): Cidr[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.map(({ address, cidr }) => networkOf(address, cidr)).filter((network) => network !== null);
}

export function networkOf(address: string, cidr: string | null): Cidr | null {
  const network = cidr === null ? null : parseCidr(cidr);
  if (network && network[1] >= SHORTEST_PREFIX[network[0].kind()]) return network;
  if (!ipaddr.isValid(address) || address.includes("%")) return null;
  const own = ipaddr.parse(address);
  return [own, own.kind() === "ipv4" ? 32 : 128];
}
