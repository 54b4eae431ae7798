import { isAbsolute } from "node:path";
import * as z from "zod";
import { LOG_LEVELS } from "../base/logger.ts";
import type { EgressSetting } from "./config.ts";

export const BASE_NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** One environment variable: how its text becomes a value, and the words for help and errors. */
interface Variable<Value> {
  parse: z.ZodType<Value, string>;
  /** Completes "it must be …" */
  allowed: string;
  meaning: string;
  /** What applies without it, in words */
  fallback: string;
}

/** The fallback is the text of a value. */
interface Fixed {
  fixed: true;
}

function wholeNumber(min: number, max: number, meaning: string, fallback: number): Variable<number> & Fixed {
  return {
    parse: z
      .string()
      .regex(/^\d{1,9}$/)
      .transform(Number)
      .pipe(z.number().min(min).max(max)),
    allowed: `a whole number from ${min} to ${max}`,
    meaning,
    fallback: String(fallback),
    fixed: true,
  };
}

function absolutePath(meaning: string, fallback: string): Variable<string> {
  return {
    parse: z.string().refine((text) => isAbsolute(text) && !text.includes("\0")),
    allowed: "an absolute path (it is not resolved against the current directory, and ~ is not expanded)",
    meaning,
    fallback,
  };
}

function list(allowed: string, item: RegExp, meaning: string, fallback: string): Variable<string[]> {
  return {
    parse: z
      .string()
      .transform((text) => text.split(",").map((part) => part.trim().toLowerCase()))
      .pipe(z.array(z.string().regex(item))),
    allowed,
    meaning,
    fallback,
  };
}

function choice<const Value extends string>(
  values: readonly Value[],
  meaning: string,
  fallback: string,
): Variable<Value> {
  return { parse: z.enum(values), allowed: `one of ${values.join(", ")}`, meaning, fallback };
}

function readEgress(text: string): EgressSetting | null {
  if (text === "deny_all" || text === "allow_all") return { kind: text };
  const [, profilePath = ""] = /^profile:([^\0]+)$/.exec(text) ?? [];
  return isAbsolute(profilePath) ? { kind: "profile", profilePath } : null;
}

/** All variables that are known, by name. Any other name that starts with IGN_MCP_ is refused. */
export const VARIABLES = {
  IGN_MCP_KERNEL: absolutePath("Guest kernel; initramfs and image.json lie beside it", "<image>/vmlinuz"),
  IGN_MCP_ROOTFS: absolutePath("Guest root file system", "<image>/rootfs-tools.ext4"),
  IGN_MCP_STORE: absolutePath("Directory of bases", "~/.local/share/ignition"),
  IGN_MCP_BASE: {
    parse: z.string().regex(BASE_NAME_PATTERN),
    allowed: "1 to 64 of a-z 0-9 . _ - and start with a letter or digit",
    meaning: "Name of the warm base",
    fallback: "tools-base",
    fixed: true,
  },
  IGN_MCP_MAX_SESSIONS: wholeNumber(1, 1024, "Most sessions at once", 8),
  IGN_MCP_IDLE_SECS: wholeNumber(1, 604_800, "Seconds after which an unused session is closed", 600),
  IGN_MCP_CALL_SECS: wholeNumber(
    0,
    3600,
    "Seconds after which run answers without progress though its command goes on; 0 for never",
    50,
  ),
  IGN_MCP_TOOLS: {
    ...choice(["core", "all"], "Tools offered: the five, or also those for long runs, files, forks", "core"),
    fixed: true,
  },
  IGN_MCP_NET: {
    parse: z.string().transform(() => true),
    allowed: "any value",
    meaning: "Any value at all gives sessions a network",
    fallback: "unset: no network",
  },
  IGN_MCP_EGRESS: {
    parse: z
      .string()
      .transform(readEgress)
      .refine((setting) => setting !== null),
    allowed: "deny_all, allow_all, or profile: and the absolute path of an egress.json",
    meaning: "What sessions reach through a proxy: nothing, what an egress.json lists, or everything public",
    fallback: "deny_all",
    fixed: true,
  },
  IGN_MCP_ACCEL: choice(["kvm", "hvf", "tcg"], "Forced acceleration", "found out"),
  IGN_MCP_MEM: wholeNumber(128, 65_536, "Guest memory in MiB", 512),
  IGN_MCP_CPUS: wholeNumber(1, 8, "Guest processors", 1),
  IGN_MCP_POOL: wholeNumber(0, 64, "Clones kept ready for the next open_session", 1),
  IGN_MCP_CARRIER: choice(["native", "twin"], "Forced implementation of the session socket", "found out"),
  IGN_MCP_HTTP_TOKEN: {
    parse: z.string(),
    allowed: "a token",
    meaning: "With --http: the bearer token clients must send",
    fallback: "none",
  },
  IGN_MCP_HTTP_TOKENS_FILE: absolutePath(
    "With --http: file of name:token[:expires] lines, one for each client",
    "none",
  ),
  IGN_MCP_HTTP_HOSTS: list(
    "names or addresses without ports, separated by commas",
    /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/,
    "With --http: names this server is reached by, besides the one it listens on",
    "none",
  ),
  IGN_MCP_HTTP_ORIGINS: list(
    "origins such as https://example.org, separated by commas",
    /^https?:\/\/[^/?#@\s]+$/,
    "With --http: origins whose pages may use this server",
    "none",
  ),
  IGN_MCP_HTTP_TLS_CERT: absolutePath("With --http: PEM file of the certificate and its chain", "no TLS"),
  IGN_MCP_HTTP_TLS_KEY: absolutePath("With --http: PEM file of its private key", "no TLS"),
  IGN_MCP_HTTP_MAX_CLIENTS: wholeNumber(1, 4096, "With --http: most MCP sessions at once", 64),
  IGN_MCP_HTTP_IDLE_SECS: wholeNumber(
    1,
    604_800,
    "With --http: seconds after which an unused MCP session ends",
    3600,
  ),
  IGN_MCP_LOG: { ...choice(LOG_LEVELS, "Least severe lines written to stderr", "warn"), fixed: true },
} satisfies Record<string, Variable<unknown> & Partial<Fixed>>;

export type VariableName = keyof typeof VARIABLES;

/** The value of each variable; undefined when it is unset and its fallback is not fixed. */
export type VariableValues = {
  [Name in VariableName]:
    | z.output<(typeof VARIABLES)[Name]["parse"]>
    | ((typeof VARIABLES)[Name] extends Fixed ? never : undefined);
};
