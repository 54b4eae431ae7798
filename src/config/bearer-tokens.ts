import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Environment } from "./config.ts";
import { ConfigError } from "./config-error.ts";

const CONTROL_OR_SPACE = /[\s\p{Cc}]/u;

interface Token {
  name: string;
  digest: Buffer;
  /** In `ms` since 1970; null for never */
  expiresAt: number | null;
}

/** A variable that tokens may come from: the path of a file, their list, or one token of a client named "default" */
export type TokenSource = readonly [variable: string, kind: "file" | "list" | "single"];

/** Bearer tokens from the environment. Without any, everybody is let in. */
export class BearerTokens {
  readonly #env: Environment;
  readonly #sources: readonly TokenSource[];
  readonly #now: () => number;
  #tokens: Token[];

  /** The first source that is set decides alone. Throws `ConfigError` for tokens that cannot be read. */
  constructor(env: Environment, sources: readonly TokenSource[], now: () => number = Date.now) {
    this.#env = env;
    this.#sources = sources;
    this.#now = now;
    this.#tokens = readTokens(env, sources);
  }

  get isEmpty(): boolean {
    return this.#tokens.length === 0;
  }

  /** Reads them again. When that fails the old ones stay, and it throws. */
  reload(): void {
    const next = readTokens(this.#env, this.#sources);
    if (next.length === 0 && !this.isEmpty)
      throw new ConfigError([
        "there are no tokens any more, which would let everybody in; the old ones stay.",
      ]);
    this.#tokens = next;
  }

  /** Name of the client whose token this is, or null. Takes as long for a wrong token as for a right one. */
  clientOf(token: string): string | null {
    const digest = digestOf(token);
    let client: string | null = null;
    for (const known of this.#tokens) {
      const isThis = timingSafeEqual(known.digest, digest);
      if (isThis && this.#isValid(known)) client = known.name;
    }
    return client;
  }

  /** Whether the client still has a token that lets it in. */
  hasClient(name: string): boolean {
    return this.#tokens.some((token) => token.name === name && this.#isValid(token));
  }

  #isValid({ expiresAt }: Token): boolean {
    return expiresAt === null || this.#now() < expiresAt;
  }
}

function readTokens(env: Environment, sources: readonly TokenSource[]): Token[] {
  for (const [variable, kind] of sources) {
    const value = env[variable];
    if (!value) continue;
    if (kind === "single") return [singleToken(value.trim(), variable)];
    return parseTokens(kind === "file" ? readTokenFile(variable, value) : value, variable);
  }
  return [];
}

function singleToken(token: string, variable: string): Token {
  if (token === "" || CONTROL_OR_SPACE.test(token))
    throw new ConfigError([
      `${variable} is set and is no token: a token has no spaces. Set it to one, or unset it.`,
    ]);
  return { name: "default", digest: digestOf(token), expiresAt: null };
}

function readTokenFile(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new ConfigError([`${variable} names ${path}, which cannot be read (${reason}).`]);
  }
}

/** `name:token[:expires]`, separated by commas or line ends; `#` starts a line of comment. */
export function parseTokens(text: string, source: string): Token[] {
  const entries = text
    .split(/\r?\n/)
    .filter((line) => !line.trimStart().startsWith("#"))
    .flatMap((line) => line.split(","))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  const tokens = entries.map((entry, index) => parseToken(entry, `token ${index + 1} of ${source}`));
  if (entries.length === 0)
    throw new ConfigError([`${source} is set and holds no token; write name:token[:expires] or unset it.`]);
  return tokens;
}

/** The token itself never appears in an error. */
function parseToken(entry: string, what: string): Token {
  const [name, token, ...rest] = entry.split(":");
  if (!name || !token || CONTROL_OR_SPACE.test(name + token))
    throw new ConfigError([`${what} is not name:token[:expires].`]);
  if (rest.length === 0) return { name, digest: digestOf(token), expiresAt: null };
  // RFC 3339 has colons of its own.
  const expires = rest.join(":");
  const expiresAt = /^\d{1,12}$/.test(expires) ? Number(expires) * 1000 : rfc3339(expires);
  if (Number.isNaN(expiresAt))
    throw new ConfigError([
      `${what} (${name}) expires at no RFC 3339 time and no number of seconds since 1970.`,
    ]);
  return { name, digest: digestOf(token), expiresAt };
}

function rfc3339(text: string): number {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.test(text)
    ? Date.parse(text)
    : Number.NaN;
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
