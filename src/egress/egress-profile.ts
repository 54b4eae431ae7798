import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";
import * as z from "zod";
import { nearestName } from "../base/nearest-name.ts";
import { parseName } from "./destination.ts";
import { EgressError } from "./egress-error.ts";
import { type EgressPolicy, type EgressRules, NO_RULES } from "./egress-policy.ts";
import { type Cidr, parseCidr } from "./ip-address.ts";

const MAX_BYTES = 1_048_576;
const MAX_ENTRIES = 10_000;
const KEYS = ["allow_cidrs", "allow_sni", "dns_servers"];

const list = <Value>(entry: (text: string) => Value | null, allowed: string) =>
  z
    .array(
      z.string().transform((text, context) => {
        const value = entry(text);
        if (value !== null) return value;
        context.addIssue({ code: "custom", message: `${quote(text)} is not ${allowed}` });
        return z.NEVER;
      }),
      `it must be a list of texts`,
    )
    .max(MAX_ENTRIES, `it has more than ${MAX_ENTRIES} entries`)
    .default([]);

const PROFILE = z.object({
  allow_cidrs: list<Cidr>(parseCidr, "an address range such as 10.1.0.0/16 or 10.1.2.3/32"),
  allow_sni: list(parseRule, "a host name such as example.com or *.example.com, in ASCII"),
  dns_servers: list((text) => (isIP(text) === 0 ? null : text), "an IP address"),
});

/** Reads an egress.json. Throws `bad_profile` that names the file, all that is wrong in it, and what to write instead. */
export async function loadEgressProfile(path: string): Promise<EgressRules> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    text = await readFile(path, "utf8");
  } catch (error) {
    const why = (error as Error).message;
    throw new EgressError("bad_profile", `egress profile ${quote(path)} cannot be read: ${why}`, error);
  }
  return parseEgressProfile(text, path);
}

export function parseEgressProfile(text: string, path: string): EgressRules {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw badProfile(path, [`it is not JSON (${(error as Error).message})`], error);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw badProfile(path, [`it must be an object with ${KEYS.join(", ")}`]);
  const problems = Object.keys(json)
    .filter((key) => !KEYS.includes(key))
    .map(unknownKey);
  const parsed = PROFILE.safeParse(json);
  for (const { path: at, message } of parsed.error?.issues ?? [])
    problems.push(`${String(at[0])}: ${message}`);
  if (!parsed.success || problems.length > 0) throw badProfile(path, problems, parsed.error);
  const { allow_cidrs, allow_sni, dns_servers } = parsed.data;
  return { allowCidrs: allow_cidrs, allowSni: allow_sni, dnsServers: dns_servers };
}

function parseRule(text: string): string | null {
  const isWildcard = text.startsWith("*.");
  const name = parseName(isWildcard ? text.slice(2) : text);
  return name !== null && isWildcard ? `*.${name}` : name;
}

function unknownKey(key: string): string {
  if (key === "allow_hosts")
    return "allow_hosts is no longer a key; list names in allow_sni and address ranges in allow_cidrs";
  const nearest = nearestName(key, KEYS);
  const next = nearest ? `did you mean ${nearest}?` : `there are ${KEYS.join(", ")}`;
  return `${quote(key)} is not a key; ${next}`;
}

function badProfile(path: string, problems: string[], cause?: unknown): EgressError {
  return new EgressError(
    "bad_profile",
    `egress profile ${quote(path)} cannot be used: ${problems.join("; ")}`,
    cause,
  );
}

function quote(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}

/** The policy a setting asks for; a profile's file is read. Throws `bad_profile`. */
export async function loadEgressPolicy(
  setting: { kind: "deny_all" | "allow_all" } | { kind: "profile"; profilePath: string },
): Promise<EgressPolicy> {
  if (setting.kind !== "profile") return { kind: setting.kind, rules: NO_RULES };
  return { kind: "profile", rules: await loadEgressProfile(setting.profilePath) };
}
