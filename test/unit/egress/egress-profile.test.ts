import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { EgressError } from "../../../src/egress/egress-error.ts";
import { loadEgressProfile, parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

function refusal(text: string): string {
  try {
    parseEgressProfile(text, "/etc/p/egress.json");
  } catch (error) {
    expect(error).toBeInstanceOf(EgressError);
    expect((error as EgressError).code).toBe("bad_profile");
    return (error as EgressError).message;
  }
  throw new Error("it was taken");
}

test("a profile lists ranges, names and resolvers", () => {
  const text = JSON.stringify({
    allow_cidrs: ["10.1.0.0/16", "2001:db8::/32"],
    allow_sni: ["Example.com", "*.Example.org"],
    dns_servers: ["9.9.9.9", "2620:fe::fe"],
  });
  const { allowCidrs, allowSni, dnsServers } = parseEgressProfile(text, "p");
  expect(allowCidrs.map(([network, bits]) => `${network}/${bits}`)).toEqual(["10.1.0.0/16", "2001:db8::/32"]);
  expect(allowSni).toEqual(["example.com", "*.example.org"]);
  expect(dnsServers).toEqual(["9.9.9.9", "2620:fe::fe"]);
});

test("an empty profile lists nothing", () => {
  expect(parseEgressProfile("{}", "p")).toEqual({ allowCidrs: [], allowSni: [], dnsServers: [] });
});

test.each([[null], [[]], [["a"]]])("allow_hosts is refused with what replaced it, even as %j", (value) => {
  const message = refusal(JSON.stringify({ allow_hosts: value }));
  expect(message).toContain("/etc/p/egress.json");
  expect(message).toContain(
    "allow_hosts is no longer a key; list names in allow_sni and address ranges in allow_cidrs",
  );
});

test.each([
  ['{"allow_cidr":[]}', "did you mean allow_cidrs?"],
  ['{"x":1}', "there are allow_cidrs, allow_sni, dns_servers"],
  ['{"allow_sni":["exämple.com"]}', "is not a host name"],
  ['{"allow_sni":["*"]}', "is not a host name"],
  ['{"allow_sni":["a.*.com"]}', "is not a host name"],
  ['{"allow_sni":["https://a.com"]}', "is not a host name"],
  ['{"allow_sni":["1.2.3.4"]}', "is not a host name"],
  ['{"allow_cidrs":["10.0.0.1"]}', "is not an address range"],
  ['{"allow_cidrs":["all"]}', "is not an address range"],
  ['{"dns_servers":["dns.example"]}', "is not an IP address"],
  ['{"dns_servers":["127.0.0.1:53"]}', "is not an IP address"],
  ['{"allow_sni":"a.com"}', "allow_sni: it must be a list of texts"],
  ['{"allow_sni":null}', "allow_sni: it must be a list of texts"],
  ["[]", "it must be an object"],
  ["null", "it must be an object"],
  ["{", "it is not JSON"],
])("%s is refused: %s", (text, why) => {
  expect(refusal(text)).toContain(why);
});

test("everything that is wrong is told at once", () => {
  const message = refusal('{"allow_hosts":[],"allow_sni":[""],"dns_servers":["x"]}');
  for (const key of ["allow_hosts", "allow_sni", "dns_servers"]) expect(message).toContain(key);
});

test("a file that is not there is told with its path", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("egress.json");
  await expect(loadEgressProfile(path)).rejects.toThrow(path);
  writeFileSync(path, '{"allow_sni":["a.example"]}');
  expect((await loadEgressProfile(path)).allowSni).toEqual(["a.example"]);
});
