import type { MiddlewareHandler } from "hono";
import { hostNameIn, LOCAL_NAMES } from "../../config/host-header.ts";
import { type EngineError, jsonError } from "../engine-error.ts";
import type { EngineEnv } from "./engine-app.ts";

/**
 * Without tokens, being on this machine is enough to come in. A page in its browser is too, so what only browsers send is
 * refused then: an Origin, and a Host that somebody else's name was led here by (DNS rebinding).
 */
export function refuseBrowsers(
  isOpen: () => boolean,
  ownUrls: readonly string[],
): MiddlewareHandler<EngineEnv> {
  const names = new Set([...LOCAL_NAMES, ...ownUrls.map((url) => new URL(url).hostname)]);
  return async (c, next) => {
    if (isOpen()) {
      const { origin, host } = c.req.header();
      if (origin !== undefined) throw refusal("of web pages (it has an Origin)");
      if (host !== undefined && !names.has(hostNameIn(host) ?? ""))
        throw refusal(`under the Host ${JSON.stringify(host.slice(0, 255))}`);
    }
    await next();
  };
}

function refusal(what: string): EngineError {
  return jsonError(
    403,
    "browser_refused",
    `an engine without tokens takes no requests ${what}; give it a token (ANVIL_API_TOKEN), or its name by EPHEMERA_PUBLIC_URL`,
  );
}
