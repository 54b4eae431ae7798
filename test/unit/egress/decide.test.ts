import { expect, test } from "bun:test";
import fc from "fast-check";
import { decide, refuseUnresolved } from "../../../src/egress/decide.ts";
import { parseAuthority } from "../../../src/egress/destination.ts";
import { EgressError } from "../../../src/egress/egress-error.ts";
import { ALLOW_ALL, DENY_ALL, type EgressPolicy, isListed } from "../../../src/egress/egress-policy.ts";
import { parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { type Cidr, isPublic, isWithin, parseCidr, parseIp } from "../../../src/egress/ip-address.ts";
import { networkOf, ownNetworks } from "../../../src/egress/own-networks.ts";

function profile(rules: object, kind: EgressPolicy["kind"] = "profile"): EgressPolicy {
  return { kind, rules: parseEgressProfile(JSON.stringify(rules), "test") };
}

/** The verdict in one line: grounds and addresses, or the reason against. */
function verdict(policy: EgressPolicy, to: string, resolved: string[], own: Cidr[] = []): string {
  const destination = parseAuthority(to, 443)!;
  const addresses = destination.address ? [destination.address] : resolved.map((text) => parseIp(text)!);
  const decision = decide(policy, destination, addresses, own);
  return decision instanceof EgressError
    ? decision.code
    : `${decision.grounds} ${decision.addresses.join(" ")}`;
}

const NAMES = profile({ allow_sni: ["a.example", "*.b.example"] });
const BOTH = profile({ allow_sni: ["a.example"], allow_cidrs: ["10.0.0.0/8", "9.9.9.0/24"] });
const ALL_AND_LAN = profile({ allow_cidrs: ["10.0.0.0/8"] }, "allow_all");

const POLICIES = { DENY_ALL, ALLOW_ALL, NAMES, BOTH, ALL_AND_LAN };

test.each([
  ["DENY_ALL", "a.example", ["8.8.8.8"], "policy_denies"],
  ["DENY_ALL", "8.8.8.8", [], "policy_denies"],
  ["ALLOW_ALL", "a.example", ["8.8.8.8", "2606:4700::1"], "policy 8.8.8.8 2606:4700::1"],
  ["ALLOW_ALL", "8.8.8.8", [], "policy 8.8.8.8"],
  ["ALLOW_ALL", "127.0.0.1", [], "address_not_public"],
  ["ALLOW_ALL", "[::ffff:127.0.0.1]", [], "address_not_public"],
  ["ALLOW_ALL", "a.example", ["169.254.169.254"], "address_not_public"],
  ["ALLOW_ALL", "a.example", ["127.0.0.1", "8.8.8.8"], "policy 8.8.8.8"],
  ["ALLOW_ALL", "a.example", ["10.1.1.1"], "address_not_public"],
  ["ALL_AND_LAN", "a.example", ["10.1.1.1"], "cidr 10.1.1.1"],
  ["ALL_AND_LAN", "10.1.1.1", [], "cidr 10.1.1.1"],
  ["ALL_AND_LAN", "192.168.1.1", [], "address_not_public"],
  ["ALL_AND_LAN", "8.8.8.8", [], "policy 8.8.8.8"],
  ["NAMES", "a.example", ["8.8.8.8"], "name 8.8.8.8"],
  ["NAMES", "A.Example.", ["8.8.8.8"], "name 8.8.8.8"],
  ["NAMES", "x.a.example", ["8.8.8.8"], "name_not_listed"],
  ["NAMES", "b.example", ["8.8.8.8"], "name_not_listed"],
  ["NAMES", "x.b.example", ["8.8.8.8"], "name 8.8.8.8"],
  ["NAMES", "x.y.b.example", ["8.8.8.8"], "name 8.8.8.8"],
  ["NAMES", "xb.example", ["8.8.8.8"], "name_not_listed"],
  ["NAMES", "a.example", ["10.0.0.1"], "address_not_public"],
  ["NAMES", "a.example", [], "address_not_public"],
  ["NAMES", "8.8.8.8", [], "address_not_listed"],
  ["BOTH", "a.example", ["10.0.0.1", "8.8.8.8"], "cidr 10.0.0.1"],
  ["BOTH", "a.example", ["8.8.8.8"], "name 8.8.8.8"],
  ["BOTH", "c.example", ["9.9.9.9"], "cidr 9.9.9.9"],
  ["BOTH", "c.example", ["8.8.8.8"], "name_not_listed"],
  ["BOTH", "9.9.9.9", [], "cidr 9.9.9.9"],
  ["BOTH", "8.8.8.8", [], "address_not_listed"],
] as const)("%s: %s at %j → %s", (policy, to, resolved, expected) => {
  expect(verdict(POLICIES[policy], to, [...resolved])).toBe(expected);
});

test.each([
  ["2001:470:1:2::10", "its own address", "address_not_public"],
  ["2001:470:1:2:ffff::20", "a neighbour", "address_not_public"],
  ["2001:470:1:3::20", "another network", "policy 2001:470:1:3::20"],
  ["198.41.0.77", "a neighbour by IPv4", "address_not_public"],
  ["64:ff9b::198.41.0.77", "the same through a translator", "address_not_public"],
  ["198.41.1.77", "outside of it", "policy 198.41.1.77"],
])("on a machine in public networks, %s, %s → %s", (address, _, expected) => {
  const own = ["2001:470:1:2::/64", "198.41.0.0/24"].map((text) => parseCidr(text)!);
  expect(verdict(ALLOW_ALL, "a.example", [address], own)).toBe(expected);
  const listing = profile({ allow_cidrs: [`${address}/${address.includes(":") ? 128 : 32}`] }, "allow_all");
  expect(verdict(listing, "a.example", [address], own)).toStartWith("cidr ");
});

test("the networks of this machine are those its addresses are in, unless they cannot be", () => {
  const text = (address: string, cidr: string | null) => networkOf(address, cidr)?.join("/");
  expect(text("198.41.0.7", "198.41.0.7/24")).toBe("198.41.0.7/24");
  expect(text("2001:db8::7", "2001:db8::7/64")).toBe("2001:db8::7/64");
  expect(text("198.41.0.7", "198.41.0.7/1")).toBe("198.41.0.7/32");
  expect(text("2001:db8::7", "2001:db8::7/3")).toBe("2001:db8::7/128");
  expect(text("198.41.0.7", null)).toBe("198.41.0.7/32");
  expect(text("fe80::1%eth0", null)).toBeUndefined();
  expect(ownNetworks().map(([, bits]) => bits)).toContain(8);
});

test("a name that can only be refused is refused before anybody is asked about it", () => {
  expect(refuseUnresolved(NAMES, parseAuthority("c.example", 443)!)?.code).toBe("name_not_listed");
  expect(refuseUnresolved(DENY_ALL, parseAuthority("c.example", 443)!)?.code).toBe("policy_denies");
  expect(refuseUnresolved(BOTH, parseAuthority("c.example", 443)!)).toBeNull();
  expect(refuseUnresolved(ALLOW_ALL, parseAuthority("c.example", 443)!)).toBeNull();
});

test("whatever a name resolves to, an address that is dialled is public or listed, and was among those resolved", () => {
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom("127.0.0.1", "10.1.2.3", "9.9.9.9", "::1", "8.8.8.8"),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(DENY_ALL, ALLOW_ALL, NAMES, BOTH, ALL_AND_LAN),
      fc.oneof(fc.constantFrom("a.example", "x.b.example", "c.example"), fc.ipV4()),
      fc.array(address, { maxLength: 5 }),
      (policy, host, texts) => {
        const destination = parseAuthority(host, 443)!;
        const addresses = destination.address ? [destination.address] : texts.map((text) => parseIp(text)!);
        const decision = decide(policy, destination, addresses);
        if (decision instanceof EgressError) return;
        expect(policy.kind).not.toBe("deny_all");
        expect(decision.addresses.length).toBeGreaterThan(0);
        for (const each of decision.addresses) {
          expect(addresses).toContain(each);
          expect(isPublic(each) || isWithin(each, policy.rules.allowCidrs)).toBe(true);
          if (policy.kind === "profile" && !isWithin(each, policy.rules.allowCidrs))
            expect(isListed(destination.name!, policy.rules.allowSni)).toBe(true);
        }
      },
    ),
  );
});
