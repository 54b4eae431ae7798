import { createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Logger } from "../../base/logger.ts";
import type { Tunnel } from "../../guest/tunnel.ts";
import { jsonError } from "../engine-error.ts";

const HOST = "127.0.0.1";

/** Takes connections to a port of this machine's loopback and carries each to the guest, until it is disposed of. */
export class ForwardListener implements Disposable {
  readonly hostPort: number;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>, hostPort: number) {
    this.#server = server;
    this.#sockets = sockets;
    this.hostPort = hostPort;
  }

  /** 0 takes any free port. Rejects with 409 for one that cannot be had. */
  static async open(hostPort: number, connect: () => Promise<Tunnel>, log: Logger): Promise<ForwardListener> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      // Its streams tell the same error; without a listener it would end the process.
      socket.on("error", () => undefined);
      void carry(socket, connect, log);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("listening", resolve);
    server.once("error", reject);
    server.listen(hostPort, HOST);
    try {
      await promise;
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? "unknown error";
      throw jsonError(409, "port_unavailable", `host port ${hostPort} cannot be had: ${reason}`, {}, error);
    }
    const address = server.address();
    return new ForwardListener(server, sockets, typeof address === "object" ? (address?.port ?? 0) : 0);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** One connection, until both directions have ended. A guest that does not answer is told as a reset. */
async function carry(socket: Socket, connect: () => Promise<Tunnel>, log: Logger): Promise<void> {
  let tunnel: Tunnel;
  try {
    tunnel = await connect();
  } catch (error) {
    log.debug({ error: String(error) }, "a connection could not be carried into a guest");
    socket.resetAndDestroy();
    return;
  }
  try {
    const { readable, writable } = Duplex.toWeb(socket) as unknown as {
      readable: ReadableStream<Uint8Array>;
      writable: WritableStream<Uint8Array>;
    };
    await Promise.all([readable.pipeTo(tunnel.writable), tunnel.readable.pipeTo(writable)]);
  } catch (error) {
    tunnel.abort(error instanceof Error ? error : new Error(String(error)));
    socket.resetAndDestroy();
  }
}
