export type Message = Record<string, unknown>;

export interface RawClientOptions {
  command: string;
  args?: string[];
  /** The server's whole environment; default: this process's */
  env?: Record<string, string>;
  cwd?: string;
}

/** How long an answer may take when nothing else is said */
const ANSWER_MS = 60_000;
/** How much of stderr an error shows */
const SHOWN_CHARACTERS = 4000;

/** The server's stdout ended while an answer was due. */
export class ServerGone extends Error {}

/**
 * Hand-written JSON-RPC over a server's stdio, for what the official client hides: bytes, order, ends, and a reader
 * that does not read. It reads only while somebody waits for a message.
 */
export class RawClient implements AsyncDisposable {
  /** Lines of stdout that were no JSON-RPC message; must stay empty */
  readonly strayLines: string[] = [];
  /** Messages that answer none of `request` and `start`, in the order they came; `next` waits for one */
  readonly notifications: Message[] = [];
  stderr = "";
  readonly #process;
  readonly #output;
  readonly #stderrDone: Promise<void>;
  readonly #decoder = new TextDecoder();
  readonly #answered = new Map<number, (message: Message | Error) => void>();
  /** Resolved whenever a message came for `next` */
  #arrivals: (() => void)[] = [];
  #rest = "";
  #isReading = false;
  #hasEnded = false;
  #nextId = 1;

  constructor({ command, args = [], env, cwd }: RawClientOptions) {
    this.#process = Bun.spawn([command, ...args], {
      ...(env !== undefined && { env }),
      ...(cwd !== undefined && { cwd }),
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#output = this.#process.stdout.getReader();
    this.#stderrDone = this.#readStderr();
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
  request(method: string, params: Message = {}, timeoutMs = ANSWER_MS): Promise<Message> {
    return this.start(method, params, timeoutMs).reply;
  }

  /** Sends a request and gives its id, to cancel it. */
  start(
    method: string,
    params: Message = {},
    timeoutMs = ANSWER_MS,
  ): { id: number; reply: Promise<Message> } {
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    this.#answered.set(id, (message) => (message instanceof Error ? reject(message) : resolve(message)));
    this.send({ jsonrpc: "2.0", id, method, params });
    this.#read();
    const late = `no reply to ${method} within ${timeoutMs} ms`;
    const reply = this.#inTime(promise, timeoutMs, late).finally(() => this.#answered.delete(id));
    return { id, reply };
  }

  notify(method: string, params: Message = {}): void {
    this.send({ jsonrpc: "2.0", method, params });
  }

  /** Calls a tool under an id of the caller's choice; the answer comes with `next`. */
  call(id: number | string, name: string, args: Message, meta?: Message): void {
    const params = { name, arguments: args, ...(meta && { _meta: meta }) };
    this.send({ jsonrpc: "2.0", id, method: "tools/call", params });
  }

  send(message: Message): void {
    // A server that is gone does not take it; whoever waits for its answer hears of that.
    this.sendLine(JSON.stringify(message)).catch(() => undefined);
  }

  /** Sends any line, JSON or not; resolves when the server has taken it. */
  sendLine(text: string): Promise<void> {
    return this.sendText(`${text}\n`);
  }

  /** The same without a newline. */
  async sendText(text: string): Promise<void> {
    this.#process.stdin.write(text);
    await this.#process.stdin.flush();
  }

  /** The oldest message that is not taken yet and answers none of `request` and `start`. */
  async next(): Promise<Message> {
    const wait = async () => {
      while (this.notifications.length === 0) await this.#arrival();
      return this.notifications.shift()!;
    };
    const message = await this.#inTime(wait(), ANSWER_MS, "no message came");
    if (this.strayLines.length > 0) throw new Error(`not JSON-RPC: ${this.strayLines.join("\n")}`);
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
    await this.#inTime(wait(), ANSWER_MS, `stderr never had ${JSON.stringify(text)}`);
  }

  /** End of input: what a client that goes away looks like to the server. */
  endInput(): void {
    void this.#process.stdin.end();
  }

  /** Closes our end of stdout: what the server writes next fails. */
  async closeOutput(): Promise<void> {
    await this.#output.cancel();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Resolves with the exit status (128+N after signal N), rejects after the limit. */
  async exited(timeoutMs = ANSWER_MS): Promise<number> {
    const status = await this.#inTime(this.#process.exited, timeoutMs, `server ${this.pid} still runs`);
    await this.#stderrDone;
    return status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    await Promise.race([this.#stderrDone, Bun.sleep(1000)]);
  }

  #arrival(): Promise<void> {
    if (this.#hasEnded)
      return Promise.reject(new ServerGone(`stdout ended with ${JSON.stringify(this.#rest)}`));
    return new Promise((resolve) => {
      this.#arrivals.push(resolve);
      this.#read();
    });
  }

  /** Reads as long as an answer is due or `next` waits. */
  #read(): void {
    if (this.#isReading || this.#hasEnded) {
      if (this.#hasEnded) this.#end();
      return;
    }
    this.#isReading = true;
    void this.#readWhileWanted();
  }

  async #readWhileWanted(): Promise<void> {
    while (this.#answered.size > 0 || this.#arrivals.length > 0) {
      const { value, done } = await this.#output.read();
      if (done) {
        this.#end();
        break;
      }
      const lines = (this.#rest + this.#decoder.decode(value, { stream: true })).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(line);
    }
    this.#isReading = false;
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    const answer = this.#answered.get(message?.["id"] as number);
    if (message !== null && answer !== undefined) {
      this.#answered.delete(message["id"] as number);
      answer(message);
      return;
    }
    if (message === null) this.strayLines.push(line);
    else this.notifications.push(message);
    for (const arrived of this.#arrivals.splice(0)) arrived();
  }

  #end(): void {
    this.#hasEnded = true;
    if (this.#rest !== "") this.strayLines.push(this.#rest);
    const gone = new ServerGone(`the server's stdout ended; stderr: ${this.stderr.slice(-SHOWN_CHARACTERS)}`);
    for (const answer of this.#answered.values()) answer(gone);
    this.#answered.clear();
    for (const arrived of this.#arrivals.splice(0)) arrived();
  }

  async #readStderr(): Promise<void> {
    for await (const chunk of this.#process.stderr.pipeThrough(new TextDecoderStream())) this.stderr += chunk;
  }

  async #inTime<T>(work: Promise<T>, limitMs: number, complaint: string): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`${complaint}; stderr: ${this.stderr.slice(-SHOWN_CHARACTERS)}`)),
      limitMs,
    );
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function parseMessage(line: string): Message | null {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null && (value as Message)["jsonrpc"] === "2.0") {
      return value as Message;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return null;
}
