import type { MiddlewareHandler } from "hono";
import { EngineError } from "../engine-error.ts";
import type { EngineEnv } from "./engine-app.ts";
import type { TokenList } from "./token-list.ts";

const BEARER = /^Bearer +([^\s]+)$/i;

/** Another kind of token that opens a few routes: the client's name, or null when it does not open this one. */
export type Capability = (token: string, method: string, path: string) => string | null;

/** Who may come in: bearers of a control-plane token, and of capabilities on the routes these open. */
export class Gate {
  readonly #tokens: TokenList;
  readonly #openPaths: ReadonlySet<string>;
  readonly #capabilities: Capability[] = [];

  constructor(tokens: TokenList, openPaths: readonly string[]) {
    this.#tokens = tokens;
    this.#openPaths = new Set(openPaths);
  }

  get isOpen(): boolean {
    return this.#tokens.isEmpty;
  }

  addCapability(capability: Capability): void {
    this.#capabilities.push(capability);
  }

  /** Rejects with 401 whoever has none, before anything of a request is looked at. */
  readonly check: MiddlewareHandler<EngineEnv> = async (c, next) => {
    const { method, path } = c.req;
    if (!this.isOpen && !(method === "GET" && this.#openPaths.has(path))) {
      const token = BEARER.exec(c.req.header("authorization") ?? "")?.[1];
      const client = token === undefined ? null : this.#clientOf(token, method, path);
      if (client === null) {
        c.header("WWW-Authenticate", 'Bearer realm="ephemera"');
        // Nobody who may not come in keeps a connection by sending a body slowly.
        if (c.req.raw.body !== null) c.header("Connection", "close");
        throw new EngineError(401, "unauthorized", { error: "unauthorized" });
      }
      c.set("client", client);
    }
    await next();
  };

  #clientOf(token: string, method: string, path: string): string | null {
    const client = this.#tokens.clientOf(token);
    if (client !== null) return client;
    for (const capability of this.#capabilities) {
      const holder = capability(token, method, path);
      if (holder !== null) return holder;
    }
    return null;
  }
}
