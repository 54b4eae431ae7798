import type { BearerTokens } from "../config/bearer-tokens.ts";
import { hostNameIn, LOCAL_NAMES } from "../config/host-header.ts";
import { isLocal, type ListenAddress } from "../config/listen-address.ts";
import { refusal } from "./http-refusal.ts";

const BEARER = /^Bearer +(\S+)$/i;
const IP_LITERAL = /^(?:\[[0-9a-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3})$/;
const ANY_ADDRESS = ["0.0.0.0", "::"];
const METHODS = "GET, POST, DELETE";
const CORS_HEADERS = {
  "Access-Control-Allow-Methods": METHODS,
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID",
  "Access-Control-Max-Age": "600",
};

/** Name of the token a request came with; null where everybody is let in. */
export type Principal = string | null;

export interface GateRules {
  listen: ListenAddress;
  hosts: readonly string[];
  origins: readonly string[];
  tokens: BearerTokens;
}

/**
 * Who may come in. A Host that is not ours means that a browser was led here by a name of somebody else (DNS
 * rebinding), an Origin that is not listed that a page of somebody else asks.
 */
export class HttpGate {
  readonly #hosts: ReadonlySet<string>;
  readonly #takesAddresses: boolean;
  readonly #origins: ReadonlySet<string>;
  readonly #tokens: BearerTokens;

  constructor({ listen, hosts, origins, tokens }: GateRules) {
    this.#hosts = new Set([...hosts, ...(isLocal(listen) ? LOCAL_NAMES : []), ...ownName(listen)]);
    this.#takesAddresses = "host" in listen && ANY_ADDRESS.includes(listen.host);
    this.#origins = new Set(origins);
    this.#tokens = tokens;
  }

  /** The principal behind a request, or the answer to give. Nothing of the body is read. */
  admit(request: Request): { principal: Principal } | Response {
    const host = request.headers.get("host")?.toLowerCase() ?? "";
    if (!this.#isOurs(host))
      return refusal(403, "This server is not known by that Host; IGN_MCP_HTTP_HOSTS lists its names.");
    const origin = request.headers.get("origin")?.toLowerCase();
    if (origin !== undefined && !this.#mayAsk(origin, host))
      return refusal(
        403,
        "Pages of that Origin may not use this server; IGN_MCP_HTTP_ORIGINS lists those that may.",
      );
    if (request.method === "OPTIONS" && origin !== undefined)
      return new Response(null, { status: 204, headers: CORS_HEADERS });
    const principal = this.#principalOf(request);
    return principal === undefined ? unauthorized(request.headers.has("authorization")) : { principal };
  }

  /** Whether whoever this was when a session began would be let in now. */
  isCurrent(principal: Principal): boolean {
    return principal === null ? this.#tokens.isEmpty : this.#tokens.hasClient(principal);
  }

  /** Lets a page of another origin that was admitted read the answer. */
  share(request: Request, response: Response): Response {
    const origin = request.headers.get("origin");
    if (
      origin === null ||
      !this.#mayAsk(origin.toLowerCase(), request.headers.get("host")?.toLowerCase() ?? "")
    )
      return response;
    response.headers.set("Access-Control-Allow-Origin", origin);
    response.headers.set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate");
    response.headers.append("Vary", "Origin");
    return response;
  }

  #isOurs(host: string): boolean {
    const name = hostNameIn(host);
    if (name === null) return false;
    return this.#hosts.has(name) || (this.#takesAddresses && IP_LITERAL.test(name));
  }

  #mayAsk(origin: string, host: string): boolean {
    return this.#origins.has(origin) || origin === `http://${host}` || origin === `https://${host}`;
  }

  /** Undefined when it may not come in. */
  #principalOf(request: Request): Principal | undefined {
    if (this.#tokens.isEmpty) return null;
    const token = BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
    return token === undefined ? undefined : (this.#tokens.clientOf(token) ?? undefined);
  }
}

function ownName(listen: ListenAddress): string[] {
  if ("unix" in listen || ANY_ADDRESS.includes(listen.host)) return [];
  return [listen.host.includes(":") ? `[${listen.host}]` : listen.host.toLowerCase()];
}

/** RFC 6750, section 3: a request without any credentials gets no error code. */
function unauthorized(hadCredentials: boolean): Response {
  const challenge = hadCredentials
    ? 'Bearer realm="ignition-mcp", error="invalid_token"'
    : 'Bearer realm="ignition-mcp"';
  return refusal(401, "A valid bearer token is needed: Authorization: Bearer …", {
    "WWW-Authenticate": challenge,
  });
}
