import { type Destination, textOf } from "./destination.ts";
import { EgressError } from "./egress-error.ts";
import { type EgressPolicy, isListed } from "./egress-policy.ts";
import { behindNat64, type Cidr, type IpAddress, isPublic, isWithin } from "./ip-address.ts";

/** What let a connection through. What a name let through must also show that name in its own protocol. */
export type Grounds = "policy" | "cidr" | "name";

/** The addresses that may be dialled, in the order they were found; at least one. */
export interface Permission {
  addresses: readonly IpAddress[];
  grounds: Grounds;
}

/** The refusal that needs no address, or null. A name that can only be refused is never told to a resolver. */
export function refuseUnresolved(
  { kind, rules }: EgressPolicy,
  destination: Destination,
): EgressError | null {
  if (kind === "deny_all")
    return new EgressError("policy_denies", "the egress policy is deny_all: nothing outside is reachable");
  const { name } = destination;
  const isHopeless = kind === "profile" && name !== null && rules.allowCidrs.length === 0;
  return isHopeless && !isListed(name, rules.allowSni) ? nameNotListed(destination) : null;
}

/**
 * Decides about the addresses a destination has: its own, or all that its name resolved to. Ranges in allow_cidrs
 * outrank everything; without one an address must be public, whatever the policy, and in none of `ownNetworks`, those
 * this machine is attached to: it stands behind whatever keeps others out of them.
 */
export function decide(
  { kind, rules }: EgressPolicy,
  destination: Destination,
  addresses: readonly IpAddress[],
  ownNetworks: readonly Cidr[] = [],
): Permission | EgressError {
  const refusal = refuseUnresolved({ kind, rules }, destination);
  if (refusal) return refusal;
  const inRanges = addresses.filter((address) => isWithin(address, rules.allowCidrs));
  if (inRanges.length > 0) return { addresses: inRanges, grounds: "cidr" };
  if (kind === "profile" && destination.name === null) return addressNotListed(destination);
  if (kind === "profile" && !isListed(destination.name!, rules.allowSni)) return nameNotListed(destination);
  const open = addresses.filter(
    (address) => isPublic(address) && !isWithin(behindNat64(address), ownNetworks),
  );
  if (open.length === 0) return addressNotPublic(destination);
  return { addresses: open, grounds: kind === "profile" ? "name" : "policy" };
}

function nameNotListed(destination: Destination): EgressError {
  return new EgressError(
    "name_not_listed",
    `the egress profile does not list ${destination.name}; only names in allow_sni and addresses in allow_cidrs are reachable`,
  );
}

function addressNotListed(destination: Destination): EgressError {
  return new EgressError(
    "address_not_listed",
    `the egress profile does not list the address of ${textOf(destination)} in allow_cidrs; use a name in allow_sni`,
  );
}

function addressNotPublic(destination: Destination): EgressError {
  return new EgressError(
    "address_not_public",
    `the address of ${textOf(destination)} is not a public one outside of this machine's networks, and allow_cidrs does not list it`,
  );
}
