import { createServer, type Server } from "node:net";
import type { LogFields, Logger } from "../../src/base/logger.ts";
import type { Connection } from "../../src/egress/channel.ts";
import { type Dial, dialTcp, streamsOf } from "../../src/egress/dial.ts";
import { EgressGate, type EgressGateOptions } from "../../src/egress/egress-gate.ts";
import { serveProxyConnection } from "../../src/egress/serve-proxy-connection.ts";

/** A public address that no test connects to: `toLoopback` dials the machine itself in its place */
export const PUBLIC = "93.184.216.34";

/** Dials loopback whatever the address is, and remembers what it was. */
export function toLoopback(dialled: string[] = []): Dial {
  return (address, port, signal, room) => {
    dialled.push(address);
    return dialTcp("127.0.0.1", port, signal, room);
  };
}

/** A gate whose log can be read. */
export class TestGate extends EgressGate {
  readonly lines: LogFields[];

  constructor(options: Omit<EgressGateOptions, "log">) {
    const lines: LogFields[] = [];
    const write = (fields: LogFields) => void lines.push(fields);
    const log: Logger = { debug: write, info: write, warn: write, error: write };
    super({ resolveName: async () => [PUBLIC], dial: toLoopback(), ...options, log });
    this.lines = lines;
  }
}

/** The guest's end of one connection to the proxy, over streams in this process. */
export class GuestEnd {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly served: Promise<void>;
  received = Buffer.alloc(0);

  constructor(gate: EgressGate) {
    const [guest, host] = streamPair();
    this.#reader = guest.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    this.#writer = guest.writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    this.served = serveProxyConnection(host, gate);
  }

  async send(bytes: string | Uint8Array): Promise<void> {
    await this.#writer.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  }

  async end(): Promise<void> {
    await this.#writer.close();
  }

  /** Reads until so much has come, or the text has; what came is in `received`. */
  async receive(enough: number | string): Promise<string> {
    const isEnough = () =>
      typeof enough === "number" ? this.received.byteLength >= enough : this.text.includes(enough);
    while (!isEnough())
      if (!(await this.#readOnce())) throw new Error(`it ended with ${JSON.stringify(this.text)}`);
    return this.text;
  }

  /** All that comes until the end. */
  async rest(): Promise<string> {
    while (await this.#readOnce());
    return this.text;
  }

  /** How many bytes come until the end; they are not kept. */
  async count(): Promise<number> {
    let count = this.received.byteLength;
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return count;
      count += value.byteLength;
    }
  }

  get text(): string {
    return this.received.toString("latin1");
  }

  async #readOnce(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (done) return false;
    this.received = Buffer.concat([this.received, value]);
    return true;
  }
}

/** A SOCKS5 request for example.com. */
export function socksTo(port: number): Buffer {
  const name = Buffer.from("example.com");
  return Buffer.concat([Buffer.of(5, 1, 0, 3, name.byteLength), name, Buffer.of(port >> 8, port & 0xff)]);
}

/** A tunnel to example.com that is open; nothing of its own was received yet. */
export async function socksTunnel(gate: TestGate, port: number): Promise<GuestEnd> {
  const guest = new GuestEnd(gate);
  await guest.send(Buffer.of(5, 1, 0));
  await guest.receive(2);
  await guest.send(socksTo(port));
  await guest.receive(12);
  guest.received = guest.received.subarray(12);
  return guest;
}

/** Both ends of a connection with a small buffer in each direction. */
export function streamPair(): [Connection, Connection] {
  const [there, back] = [pipe(), pipe()];
  return [
    { readable: back.readable, writable: there.writable },
    { readable: there.readable, writable: back.writable },
  ];
}

function pipe(): TransformStream<Uint8Array, Uint8Array> {
  const strategy = { highWaterMark: 65_536, size: (chunk?: Uint8Array) => chunk?.byteLength ?? 0 };
  return new TransformStream({}, strategy, strategy);
}

/** A gate behind a TCP port, for clients that want one. */
export class ProxyPort implements AsyncDisposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(gate: EgressGate): Promise<ProxyPort> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      void serveProxyConnection(streamsOf(socket), gate);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ProxyPort(server);
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}
