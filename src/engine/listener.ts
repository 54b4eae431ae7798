import { rmSync } from "node:fs";
import type { Server } from "bun";
import { removeDeadSocket } from "../base/dead-socket.ts";
import type { ListenAddress } from "../config/listen-address.ts";
import { EngineError } from "./engine-error.ts";
import type { EngineApp } from "./http/engine-app.ts";
import { isStreamed } from "./http/streamed-answers.ts";

/** For a client to send its request's head, and between requests, in `s`; in between the routes' own deadlines count */
const IDLE_S = 30;
/** Routes have limits of their own, a bundle's being the largest. */
const MAX_BODY_BYTES = Number.MAX_SAFE_INTEGER;

/** Takes requests for the app until it is stopped. */
export interface Listener {
  /** With the real port where 0 was asked for */
  address: ListenAddress;
  stop(): Promise<void>;
}

/** Rejects when the address cannot be had. A socket that nobody listens on is replaced. */
export async function listen(app: EngineApp, address: ListenAddress, idleS = IDLE_S): Promise<Listener> {
  if ("unix" in address) await removeDeadSocket(address.unix);
  const where = "unix" in address ? { unix: address.unix } : { hostname: address.host, port: address.port };
  let server: Server<undefined>;
  // A socket is for this user only from its first moment on.
  const umask = process.umask(0o077);
  try {
    server = Bun.serve({
      ...where,
      maxRequestBodySize: MAX_BODY_BYTES,
      idleTimeout: idleS,
      fetch: async (request, self) => {
        self.timeout(request, 0);
        const response = await app.fetch(request, { server: self });
        // Else the connection would have all the time in the world for its next request, too.
        if (isStreamed(response.headers)) response.headers.set("connection", "close");
        else self.timeout(request, idleS);
        return response;
      },
    } as Bun.Serve.Options<undefined>);
  } catch (error) {
    const text = "unix" in address ? address.unix : `${address.host}:${address.port}`;
    throw new EngineError(
      500,
      "listen_failed",
      `the engine cannot listen on ${text}: ${(error as Error).message}. Set ANVIL_API_ADDR to another address`,
      error,
    );
  } finally {
    process.umask(umask);
  }
  return {
    address: "unix" in address ? address : { host: address.host, port: server.port ?? address.port },
    stop: async () => {
      await server.stop(true);
      if ("unix" in address) rmSync(address.unix, { force: true });
    },
  };
}
