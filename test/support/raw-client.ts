type Message = Record<string, unknown>;

export interface RawClientOptions {
  command: string;
  args?: string[];
  /** The server's whole environment */
  env: Record<string, string>;
  cwd?: string;
}

/** Hand-written JSON-RPC over a server's stdio, for what the official client hides: bytes, order, end of input. */
export class RawClient implements AsyncDisposable {
  /** Lines of stdout that were no JSON-RPC message; must stay empty */
  readonly strayLines: string[] = [];
  /** Messages without an id of ours, in the order they came */
  readonly notifications: Message[] = [];
  stderr = "";
  readonly #process;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #output;
  readonly #readers: Promise<void>[];
  #nextId = 1;

  constructor({ command, args = [], env, cwd }: RawClientOptions) {
    this.#process = Bun.spawn([command, ...args], {
      env,
      ...(cwd !== undefined && { cwd }),
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#output = this.#process.stdout.getReader();
    this.#readers = [this.#readStdout(), this.#readStderr()];
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Sends `initialize` and `notifications/initialized`; resolves with the server's result. */
  async initialize(protocolVersion = "2025-06-18"): Promise<Message> {
    const clientInfo = { name: "raw", version: "1" };
    const reply = await this.request("initialize", { protocolVersion, capabilities: {}, clientInfo });
    this.notify("notifications/initialized");
    return reply["result"] as Message;
  }

  /** Resolves with the whole reply, result or error. */
  request(method: string, params: Message = {}, timeoutMs = 60_000): Promise<Message> {
    return this.start(method, params, timeoutMs).reply;
  }

  /** Sends a request and gives its id, to cancel it. */
  start(method: string, params: Message = {}, timeoutMs = 60_000): { id: number; reply: Promise<Message> } {
    const id = this.#nextId++;
    const reply = new Promise<Message>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`no reply to ${method} within ${timeoutMs} ms; stderr: ${this.stderr}`));
      }, timeoutMs);
      this.#waiting.set(id, (message) => {
        clearTimeout(timer);
        resolve(message);
      });
    });
    this.sendLine(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return { id, reply };
  }

  notify(method: string, params: Message = {}): void {
    this.sendLine(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** Sends any text, JSON or not. */
  sendLine(text: string): void {
    this.#process.stdin.write(`${text}\n`);
    this.#process.stdin.flush();
  }

  /** End of input: what a client that goes away looks like to the server. */
  endInput(): void {
    this.#process.stdin.end();
  }

  /** Closes our end of stdout: what the server writes next fails. */
  closeOutput(): void {
    void this.#output.cancel();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Resolves with the exit status (128+N after signal N), rejects after the limit. */
  async exited(timeoutMs: number): Promise<number> {
    const late = Promise.withResolvers<never>();
    const message = `server ${this.pid} still runs after ${timeoutMs} ms`;
    const timer = setTimeout(() => late.reject(new Error(message)), timeoutMs);
    try {
      return await Promise.race([this.#process.exited, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    await Promise.race([Promise.all(this.#readers), Bun.sleep(1000)]);
  }

  async #readStdout(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for (;;) {
      const { value, done } = await this.#output.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(line);
    }
    if (rest !== "") this.strayLines.push(rest);
  }

  async #readStderr(): Promise<void> {
    for await (const chunk of this.#process.stderr.pipeThrough(new TextDecoderStream())) this.stderr += chunk;
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    if (message === null) {
      this.strayLines.push(line);
      return;
    }
    const resolve = this.#waiting.get(message["id"] as number);
    if (resolve === undefined) {
      this.notifications.push(message);
      return;
    }
    this.#waiting.delete(message["id"] as number);
    resolve(message);
  }
}

function parseMessage(line: string): Message | null {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null && "jsonrpc" in value) return value as Message;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return null;
}
