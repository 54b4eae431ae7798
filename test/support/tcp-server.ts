import { createServer, type Server, type Socket } from "node:net";

/** A TCP server on loopback; each connection is handed to `serve`, and stays open for writing when the client ends. */
export class TcpServer implements Disposable {
  readonly #server: Server;
  readonly sockets: Socket[] = [];

  private constructor(serve: (socket: Socket) => void) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.push(socket);
      // Connections that break are part of the tests.
      socket.on("error", () => undefined);
      serve(socket);
    });
  }

  static async start(serve: (socket: Socket) => void, address = "127.0.0.1"): Promise<TcpServer> {
    const server = new TcpServer(serve);
    await new Promise<void>((resolve) => server.#server.listen(0, address, resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}
