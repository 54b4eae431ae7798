import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket, Subprocess } from "bun";

/** Message types of docs/wire/agent.md, written down again so that a slip in the agent shows. */
export const type = {
  hello: 0x01,
  cloned: 0x02,
  ping: 0x03,
  hold: 0x04,
  release: 0x05,
  probe: 0x06,
  run: 0x10,
  command: 0x11,
  stdin: 0x12,
  stdinEof: 0x13,
  kill: 0x14,
  put: 0x20,
  data: 0x21,
  eof: 0x22,
  get: 0x30,
  credit: 0x40,
  cancel: 0x41,
  listen: 0x50,
  open: 0x51,
  ok: 0x80,
  stdout: 0x91,
  stderr: 0x92,
  report: 0x93,
  exit: 0x95,
  accepted: 0x96,
  error: 0xff,
} as const;

export interface Frame {
  type: number;
  stream: number;
  payload: Buffer;
}

export const windowBytes = 1_048_576;
const replyDeadlineMs = 60_000;

export function encodeFrame(frameType: number, stream: number, payload: Uint8Array | object = {}): Buffer {
  const body = payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload));
  const header = Buffer.alloc(9);
  header.writeUInt32LE(body.length + 5, 0);
  header.writeUInt8(frameType, 4);
  header.writeUInt32LE(stream, 5);
  return Buffer.concat([header, body]);
}

/** The agent as a process of this host, spoken to over a socket as the host speaks to a port. */
export class AgentProcess implements AsyncDisposable {
  readonly #process: Subprocess;
  readonly #socket: Socket;
  readonly directory: string;
  /** In the place of the guest's 3128 */
  readonly proxyPort: number;
  #received = Buffer.alloc(0);
  #unsent = Buffer.alloc(0);
  #waiting: (() => void)[] = [];
  #queues = new Map<number, Frame[]>();
  #greeted = false;
  #nextStream = 1;

  private constructor(process: Subprocess, socket: Socket, directory: string, proxyPort: number) {
    this.#process = process;
    this.#socket = socket;
    this.directory = directory;
    this.proxyPort = proxyPort;
  }

  /** `cgroups` names a directory to create in a cgroup v2 tree; without it runs are found by their session. */
  static async start(cgroups?: string): Promise<AgentProcess> {
    const directory = mkdtempSync(join(tmpdir(), "ignition-agent-"));
    const path = join(directory, "socket");
    const connected = Promise.withResolvers<Socket>();
    let agent: AgentProcess | undefined;
    const listener = Bun.listen({
      unix: path,
      socket: {
        open: (socket) => connected.resolve(socket),
        data: (_, bytes) => agent?.receive(bytes),
        drain: () => agent?.flush(),
      },
    });
    const proxyPort = freePort();
    const command = [process.env["AGENT"]!, "--connect", path, "--spool", join(directory, "runs")];
    command.push("--proxy-port", String(proxyPort));
    if (cgroups) command.push("--cgroups", cgroups);
    const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
    agent = new AgentProcess(child, await connected.promise, directory, proxyPort);
    listener.stop();
    return agent;
  }

  /** Starts, handshakes and says hello. */
  static async open(cgroups?: string): Promise<AgentProcess> {
    const agent = await AgentProcess.start(cgroups);
    await agent.connect();
    return agent;
  }

  async connect(): Promise<string> {
    this.#greeted = false;
    this.#queues.clear();
    this.sendRaw(Buffer.from("CONNECT 7000\n"));
    const line = await this.#until(() => this.#takeLine());
    this.#greeted = true;
    this.#takeFrames();
    this.send(type.hello, 0, { protocol: 1, nonce: "0123456789abcdef".repeat(2) });
    const hello = await this.next(0);
    if (hello.type !== type.ok) throw new Error(`HELLO was refused: ${hello.payload}`);
    return line;
  }

  get pid(): number {
    return this.#process.pid;
  }

  newStream(): number {
    return this.#nextStream++;
  }

  send(frameType: number, stream: number, payload: Uint8Array | object = {}): void {
    this.sendRaw(encodeFrame(frameType, stream, payload));
  }

  sendRaw(bytes: Uint8Array): void {
    this.#unsent = Buffer.concat([this.#unsent, bytes]);
    this.flush();
  }

  flush(): void {
    const count = this.#socket.write(this.#unsent);
    this.#unsent = this.#unsent.subarray(Math.max(count, 0));
  }

  receive(bytes: Uint8Array): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    if (this.#greeted) this.#takeFrames();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The next frame of a stream. */
  next(stream: number): Promise<Frame> {
    return this.#until(() => this.#queues.get(stream)?.shift());
  }

  /** The next stream that the agent opened. */
  accepted(): Promise<number> {
    return this.#until(() => {
      for (const [stream, [first]] of this.#queues) {
        if (first?.type !== type.accepted) continue;
        this.#queues.get(stream)!.shift();
        return stream;
      }
      return undefined;
    });
  }

  pendingFrames(stream: number): Frame[] {
    return this.#queues.get(stream) ?? [];
  }

  /** Exit code once the agent is gone. */
  get exited(): Promise<number> {
    return this.#process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.end();
    const code = await this.#process.exited;
    rmSync(this.directory, { recursive: true, force: true });
    if (code !== 0) throw new Error(`the agent ended with ${code}: its sanitizer's report is above`);
  }

  #takeLine(): string | undefined {
    const end = this.#received.indexOf("\n");
    if (end < 0) return undefined;
    const line = this.#received.subarray(0, end).toString("latin1");
    this.#received = this.#received.subarray(end + 1);
    return line;
  }

  #takeFrames(): void {
    while (this.#received.length >= 4) {
      const end = 4 + this.#received.readUInt32LE(0);
      if (this.#received.length < end) return;
      const frame = {
        type: this.#received.readUInt8(4),
        stream: this.#received.readUInt32LE(5),
        payload: this.#received.subarray(9, end),
      };
      this.#received = this.#received.subarray(end);
      const queue = this.#queues.get(frame.stream) ?? [];
      this.#queues.set(frame.stream, queue);
      queue.push(frame);
    }
  }

  async #until<T>(take: () => T | undefined): Promise<T> {
    const deadline = Date.now() + replyDeadlineMs;
    for (;;) {
      const taken = take();
      if (taken !== undefined) return taken;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error("the agent did not answer");
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      const timer = setTimeout(resolve, left);
      await promise;
      clearTimeout(timer);
    }
  }
}

/** Below the ports that the kernel gives out: nobody gets it by chance before the agent does, or while it does not listen. */
function freePort(): number {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
