import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { type AgentProcess, type Frame, type } from "./agent-process.ts";
import { parse, uint32 } from "./agent-requests.ts";

export const tunnelWindowBytes = 65_536;

/** A tunnel as the host has it: sends within the credit, and grants what it read. */
export class HostTunnel {
  creditBytes = tunnelWindowBytes;
  #isEnded = false;
  #failure: Record<string, unknown> | null = null;
  readonly #parts: Buffer[] = [];

  constructor(
    readonly agent: AgentProcess,
    readonly stream: number,
  ) {}

  /** OPEN, which must be answered OK. */
  static async open(agent: AgentProcess, port: number): Promise<HostTunnel> {
    const stream = agent.newStream();
    agent.send(type.open, stream, { port });
    const frame = await agent.next(stream);
    if (frame.type !== type.ok) throw new Error(`OPEN was refused: ${frame.payload}`);
    return new HostTunnel(agent, stream);
  }

  /** Sends all, reading meanwhile what comes. */
  async send(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.byteLength && this.#failure === null) {
      const part = bytes.subarray(at, at + Math.min(this.creditBytes, 20_000));
      if (part.byteLength === 0) {
        await this.#takeNext();
        continue;
      }
      this.agent.send(type.data, this.stream, part);
      this.creditBytes -= part.byteLength;
      at += part.byteLength;
    }
  }

  end(): void {
    this.agent.send(type.eof, this.stream, Buffer.alloc(0));
  }

  cancel(): void {
    this.agent.send(type.cancel, this.stream, Buffer.alloc(0));
  }

  /** All that came up to the guest's EOF; throws the agent's ERROR. */
  async readToEnd(): Promise<Buffer> {
    while (!this.#isEnded) {
      if (this.#failure !== null) throw new Error(String(this.#failure["code"]));
      await this.#takeNext();
    }
    return Buffer.concat(this.#parts);
  }

  /** ERROR's members; nothing else may come before it but DATA and CREDIT. */
  async failure(): Promise<Record<string, unknown>> {
    while (this.#failure === null) await this.#takeNext();
    return this.#failure;
  }

  async #takeNext(): Promise<void> {
    this.#take(await this.agent.next(this.stream));
  }

  #take(frame: Frame): void {
    if (frame.type === type.data) {
      this.#parts.push(frame.payload);
      this.agent.send(type.credit, this.stream, uint32(frame.payload.length));
    } else if (frame.type === type.credit) this.creditBytes += frame.payload.readUInt32LE(0);
    else if (frame.type === type.eof) this.#isEnded = true;
    else if (frame.type === type.error) this.#failure = parse(frame);
    else throw new Error(`type ${frame.type} on a tunnel`);
  }
}

/** A server on 127.0.0.1 in the place of one in the guest. */
export class GuestServer implements AsyncDisposable {
  readonly #server: Server;
  readonly sockets: Socket[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(onConnection: (socket: Socket) => void): Promise<GuestServer> {
    const server = createServer({ allowHalfOpen: true });
    const self = new GuestServer(server);
    server.on("connection", (socket) => {
      self.sockets.push(socket);
      socket.on("error", () => undefined);
      onConnection(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return self;
  }

  /** Sends everything back, and the end behind it. */
  static echo(): Promise<GuestServer> {
    return GuestServer.start((socket) => socket.pipe(socket));
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A program in the guest that uses the proxy. */
export async function guestClient(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  socket.on("error", () => undefined);
  return socket;
}

export async function readAll(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  await once(socket, "end");
  return Buffer.concat(parts);
}
