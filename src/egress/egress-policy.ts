import type { Cidr } from "./ip-address.ts";

export type EgressPolicyKind = "deny_all" | "profile" | "allow_all";

/** What an egress.json says. */
export interface EgressRules {
  /** Addresses that may be reached whatever else is said, private ones too */
  allowCidrs: readonly Cidr[];
  /** Names in canonical form: exact, or `*.` and a name, which means every name below it and not that name itself */
  allowSni: readonly string[];
  /** Addresses of the resolvers asked; those of the machine when empty */
  dnsServers: readonly string[];
}

/** `profile` reaches what the rules list; of `allow_all` they only widen what is reachable to addresses that are not public. */
export interface EgressPolicy {
  kind: EgressPolicyKind;
  rules: EgressRules;
}

export const NO_RULES: EgressRules = { allowCidrs: [], allowSni: [], dnsServers: [] };
export const DENY_ALL: EgressPolicy = { kind: "deny_all", rules: NO_RULES };
export const ALLOW_ALL: EgressPolicy = { kind: "allow_all", rules: NO_RULES };

/** Whether a canonical name is listed. */
export function isListed(name: string, allowSni: readonly string[]): boolean {
  return allowSni.some((rule) => (rule.startsWith("*.") ? name.endsWith(rule.slice(1)) : name === rule));
}
