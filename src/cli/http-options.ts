import type { Command } from "commander";
import type { Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { HttpOptions, HttpSettings } from "../config/load-http-settings.ts";

export type ServeOptions = Partial<HttpOptions>;

/** Adds the options of a command that serves MCP, on stdin and stdout unless one of them says otherwise. */
export function addHttpOptions(command: Command): Command {
  return command
    .option("--http <address>", "serve MCP over HTTP on host:port or unix:/path instead of stdin and stdout")
    .option("--tls-cert <file>", "with --http: PEM file of the certificate and its chain")
    .option("--tls-key <file>", "with --http: PEM file of its private key");
}

/** Null without --http. Throws `ConfigError` for settings that cannot be. */
export async function httpSettings(env: Environment, options: ServeOptions): Promise<HttpSettings | null> {
  const { http, tlsCert, tlsKey } = options;
  if (http === undefined) {
    if (tlsCert === undefined && tlsKey === undefined) return null;
    throw new ConfigError(["--tls-cert and --tls-key need --http; over stdin and stdout there is no TLS."]);
  }
  const { loadHttpSettings } = await import("../config/load-http-settings.ts");
  return loadHttpSettings(env, {
    http,
    ...(tlsCert !== undefined && { tlsCert }),
    ...(tlsKey !== undefined && { tlsKey }),
  });
}
