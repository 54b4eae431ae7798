import { resolve } from "node:path";
import { BearerTokens, type TokenSource } from "./bearer-tokens.ts";
import type { Environment } from "./config.ts";
import { ConfigError } from "./config-error.ts";
import { isLocal, type ListenAddress, parseListenAddress } from "./listen-address.ts";
import { readVariables } from "./load-config.ts";

const TOKEN_SOURCES: readonly TokenSource[] = [
  ["IGN_MCP_HTTP_TOKENS_FILE", "file"],
  ["IGN_MCP_HTTP_TOKEN", "single"],
];
/** What a header can carry behind "Bearer " (RFC 6750, b64token, and a little more) */
const TOKEN = /^[\x21-\x7e]+$/;

/** What the command line says; its paths win over those of the environment. */
export interface HttpOptions {
  http: string;
  tlsCert?: string;
  tlsKey?: string;
}

/** How an MCP server is served over HTTP. All paths are absolute. */
export interface HttpSettings {
  listen: ListenAddress;
  tls: { certPath: string; keyPath: string } | null;
  /** Lower-case names, without ports, besides the one it listens on */
  hosts: readonly string[];
  origins: readonly string[];
  tokens: BearerTokens;
  /** MCP sessions at once */
  maxClients: number;
  /** Unused time after which an MCP session ends, in `ms` */
  idleMs: number;
}

/** Throws `ConfigError` that names all that is wrong, without showing a token. */
export function loadHttpSettings(env: Environment, options: HttpOptions): HttpSettings {
  const values = readVariables(env);
  const problems: string[] = [];
  const listen = parseListenAddress(options.http);
  if (listen === null)
    problems.push(
      `--http ${JSON.stringify(options.http.slice(0, 200))} is no address; it must be host:port or unix:/absolute/path.`,
    );
  const certPath = options.tlsCert ?? values.IGN_MCP_HTTP_TLS_CERT;
  const keyPath = options.tlsKey ?? values.IGN_MCP_HTTP_TLS_KEY;
  if ((certPath === undefined) !== (keyPath === undefined))
    problems.push("TLS needs both files, --tls-cert and --tls-key (or IGN_MCP_HTTP_TLS_CERT and _KEY).");
  if (certPath !== undefined && listen !== null && "unix" in listen)
    problems.push("TLS is not served on a unix socket; leave the TLS files out, or listen on host:port.");
  const token = env["IGN_MCP_HTTP_TOKEN"];
  if (token && !TOKEN.test(token.trim()))
    problems.push("IGN_MCP_HTTP_TOKEN must be visible ASCII characters without spaces.");
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    listen: listen!,
    tls: certPath && keyPath ? { certPath: resolve(certPath), keyPath: resolve(keyPath) } : null,
    hosts: values.IGN_MCP_HTTP_HOSTS ?? [],
    origins: values.IGN_MCP_HTTP_ORIGINS ?? [],
    tokens: tokensFor(env, listen!),
    maxClients: values.IGN_MCP_HTTP_MAX_CLIENTS,
    idleMs: values.IGN_MCP_HTTP_IDLE_SECS * 1000,
  };
}

/** Whoever has no token is let in only where other machines cannot connect. */
function tokensFor(env: Environment, listen: ListenAddress): BearerTokens {
  const tokens = new BearerTokens(env, TOKEN_SOURCES);
  if (!tokens.isEmpty || isLocal(listen)) return tokens;
  throw new ConfigError([
    "the address of --http can be reached from other machines, and there is no token; set IGN_MCP_HTTP_TOKENS_FILE or IGN_MCP_HTTP_TOKEN, or listen on 127.0.0.1 or unix:/path.",
  ]);
}
