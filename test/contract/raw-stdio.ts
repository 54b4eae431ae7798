export type Message = Record<string, unknown>;

const FIXTURE = `${import.meta.dir}/fixture-server.ts`;
const REPLY_LIMIT_MS = 10_000;

/** A server process and hand-written lines: bytes, order, and a reader that can stop reading. */
export class RawStdio implements AsyncDisposable {
  readonly #process;
  readonly #stdout;
  readonly #decoder = new TextDecoder();
  readonly #stderrDone: Promise<void>;
  #unread = "";
  stderr = "";

  constructor(tools: "core" | "all" = "core") {
    this.#process = Bun.spawn([process.execPath, FIXTURE, tools], { stdio: ["pipe", "pipe", "pipe"] });
    this.#stdout = this.#process.stdout.getReader();
    this.#stderrDone = this.#collectStderr();
  }

  static async initialized(tools: "core" | "all" = "core"): Promise<RawStdio> {
    const server = new RawStdio(tools);
    server.send({
      jsonrpc: "2.0",
      id: "init",
      method: "initialize",
      params: {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "raw", version: "1" },
      },
    });
    await server.next();
    server.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return server;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Resolves when the server has taken the line. */
  async sendLine(line: string): Promise<void> {
    this.#process.stdin.write(`${line}\n`);
    await this.#process.stdin.flush();
  }

  send(message: Message): void {
    void this.sendLine(JSON.stringify(message));
  }

  call(id: number | string, name: string, args: Message, meta?: Message): void {
    this.send({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name, arguments: args, ...(meta && { _meta: meta }) },
    });
  }

  /** The next message on stdout; fails on a line that is no JSON-RPC, and when none comes in time. */
  async next(): Promise<Message> {
    const line = await inTime(this.#nextLine(), `no message came; stderr: ${this.stderr}`);
    const message = JSON.parse(line) as Message;
    if (message["jsonrpc"] !== "2.0") throw new Error(`not JSON-RPC: ${line}`);
    return message;
  }

  async take(count: number): Promise<Message[]> {
    const messages: Message[] = [];
    while (messages.length < count) messages.push(await this.next());
    return messages;
  }

  /** Resolves when stderr contains the text. */
  async stderrHas(text: string): Promise<void> {
    const wait = async () => {
      while (!this.stderr.includes(text)) await Bun.sleep(5);
    };
    await inTime(wait(), `stderr never had ${JSON.stringify(text)}: ${this.stderr}`);
  }

  /** What a client that goes away looks like to the server. */
  endInput(): void {
    void this.#process.stdin.end();
  }

  async stopListening(): Promise<void> {
    await this.#stdout.cancel();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async exited(): Promise<number> {
    const code = await inTime(this.#process.exited, `still running; stderr: ${this.stderr}`);
    await this.#stderrDone;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }

  async #nextLine(): Promise<string> {
    for (;;) {
      const end = this.#unread.indexOf("\n");
      if (end >= 0) {
        const line = this.#unread.slice(0, end);
        this.#unread = this.#unread.slice(end + 1);
        return line;
      }
      const { value, done } = await this.#stdout.read();
      if (done) throw new Error(`stdout ended with ${JSON.stringify(this.#unread)}; stderr: ${this.stderr}`);
      this.#unread += this.#decoder.decode(value, { stream: true });
    }
  }

  async #collectStderr(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#process.stderr) this.stderr += decoder.decode(chunk, { stream: true });
  }
}

async function inTime<T>(work: Promise<T>, complaint: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(complaint)), REPLY_LIMIT_MS);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
