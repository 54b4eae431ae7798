import { daemonUrlProblem, parseDaemonUrl } from "../anvil/daemon-url.ts";
import type { DaemonTarget } from "../anvil/send-request.ts";
import type { Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";

const DEFAULT_URL = "http://127.0.0.1:3000";
const UNIX = "unix:";

/** The daemon that EPHEMERA_CTL_URL names, and the token: the option's, else the first of two variables. */
export function ctlTarget(env: Environment, tokenOption: string | undefined): DaemonTarget {
  const url = env["EPHEMERA_CTL_URL"] || DEFAULT_URL;
  const token = tokenOption || env["EPHEMERA_CTL_TOKEN"] || env["EPHEMERA_API_TOKEN"] || null;
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
    throw new ConfigError(["The token must be visible ASCII characters without spaces."]);
  }
  if (url.startsWith(UNIX)) return { baseUrl: "http://localhost", socketPath: socketPathOf(url), token };
  const problem = daemonUrlProblem(url);
  if (problem !== null)
    throw new ConfigError([`EPHEMERA_CTL_URL must ${problem}, or be unix:/path/of/a/socket.`]);
  return { baseUrl: parseDaemonUrl(url), token };
}

function socketPathOf(url: string): string {
  const path = url.slice(UNIX.length).replace(/^\/\/(?=\/)/, "");
  if (path.startsWith("/") && !path.includes("\0")) return path;
  throw new ConfigError(["EPHEMERA_CTL_URL with unix: must go on with the absolute path of a socket."]);
}
