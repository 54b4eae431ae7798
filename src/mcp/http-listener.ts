import { rmSync } from "node:fs";
import type { Server } from "bun";
import { removeDeadSocket } from "../base/dead-socket.ts";
import type { ListenAddress } from "../config/listen-address.ts";
import { MAX_BODY_BYTES } from "./http-endpoint.ts";
import { HttpServerError } from "./http-server-error.ts";
import type { TlsMaterial } from "./tls-material.ts";

/**
 * Silence after which a connection ends, in `s`. Streams break it with keep-alives, every 15 s, if their client takes
 * them; a body, whose pieces do not count for Bun, has a deadline of its own.
 */
const DEFAULT_IDLE_S = 30;
/** Whoever may use the socket is whoever may open it */
const SOCKET_UMASK = 0o177;

export interface ListenerOptions {
  address: ListenAddress;
  tls: TlsMaterial | null;
  fetch: (request: Request) => Promise<Response>;
  /** Default 30 */
  idleS?: number;
}

/** Takes requests for `fetch` on one address. */
export class HttpListener {
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #idleS: number;
  #address: ListenAddress;
  #current: Server<undefined>;
  /** Served out after a change of the certificate */
  readonly #former = new Set<Server<undefined>>();

  /** Rejects with `HttpServerError` when the address cannot be had. A socket that nobody listens on is replaced. */
  static async open(options: ListenerOptions): Promise<HttpListener> {
    if ("unix" in options.address) await removeDeadSocket(options.address.unix);
    return new HttpListener(options);
  }

  private constructor({ address, tls, fetch, idleS = DEFAULT_IDLE_S }: ListenerOptions) {
    this.#fetch = fetch;
    this.#idleS = idleS;
    this.#address = address;
    this.#current = this.#serve(tls, false);
    if ("host" in address) this.#address = { host: address.host, port: this.#current.port ?? address.port };
    if (tls === null) return;
    // A port that may be shared, which a later certificate needs, would be shared with a server that has it already.
    void this.#current.stop(true);
    this.#current = this.#serve(tls, true);
  }

  /** With the real port where 0 was asked for */
  get address(): ListenAddress {
    return this.#address;
  }

  /** New connections get this certificate. Requests under way are answered on the old ones; idle ones are closed. */
  changeTls(tls: TlsMaterial): void {
    const former = this.#current;
    this.#current = this.#serve(tls, true);
    this.#former.add(former);
    void former.stop(false).then(() => this.#former.delete(former));
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    await Promise.all([this.#current, ...this.#former].map((server) => server.stop(true)));
    if ("unix" in this.#address) rmSync(this.#address.unix, { force: true });
  }

  #serve(tls: TlsMaterial | null, reusePort: boolean): Server<undefined> {
    const address = this.#address;
    const where = "unix" in address ? { unix: address.unix } : { hostname: address.host, port: address.port };
    const umask = process.umask(SOCKET_UMASK);
    try {
      return Bun.serve({
        ...where,
        ...(tls && { tls: { cert: tls.cert, key: tls.key } }),
        reusePort,
        development: false,
        // Beyond it Bun answers itself; up to it our own answer says what the limit is.
        maxRequestBodySize: 2 * MAX_BODY_BYTES,
        idleTimeout: this.#idleS,
        fetch: async (request, server) => {
          server.timeout(request, 0);
          const response = await this.#fetch(request);
          server.timeout(request, this.#idleS);
          return response;
        },
      } as Bun.Serve.Options<undefined>);
    } catch (error) {
      const text = "unix" in address ? address.unix : `${address.host}:${address.port}`;
      throw new HttpServerError(
        "listen_failed",
        `the server cannot listen on ${text}: ${(error as Error).message}. Give --http another address.`,
        error,
      );
    } finally {
      process.umask(umask);
    }
  }
}
