import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { EXECUTABLE_PATH } from "./real-vm.ts";

const START_MS = 60_000;
const END_MS = 60_000;
const SERVES = /serves MCP on (?:(https?:\S+?)|unix:(\S+?), path \/mcp)(?:,|\n)/;

export interface Ended {
  status: number;
  stdout: string;
}

/** The compiled server or adapter over HTTP. */
export class HttpProcess implements AsyncDisposable {
  /** Everything it wrote to stderr so far */
  stderr = "";
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #stdout: Promise<string>;

  private constructor(args: string[], env: Record<string, string>) {
    this.#child = Bun.spawn([EXECUTABLE_PATH, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#stdout = this.#child.stdout.text();
    void this.#relay();
  }

  /** Resolves when it listens; throws with its stderr when it ends or is late. */
  static async start(args: string[], env: Record<string, string>): Promise<HttpProcess> {
    const server = new HttpProcess(args, env);
    const deadline = performance.now() + START_MS;
    while (!SERVES.test(server.stderr)) {
      if (server.#child.exitCode !== null || performance.now() > deadline) {
        await server[Symbol.asyncDispose]();
        throw new Error(`${args.join(" ")} did not say where it serves: ${server.stderr}`);
      }
      await Bun.sleep(10);
    }
    return server;
  }

  get pid(): number {
    return this.#child.pid;
  }

  get url(): string {
    return SERVES.exec(this.stderr)![1]!;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async end(name: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
    this.#child.kill(name);
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
    const status = await this.#child.exited;
    clearTimeout(killer);
    return { status, stdout: await this.#stdout };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) await this.end();
  }

  async #relay(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) this.stderr += text;
  }
}

/** The official client over HTTP. `tls` is what it trusts, as for fetch. */
export class HttpClient implements AsyncDisposable {
  readonly #client = new Client({ name: "ignition-test", version: "1" });
  readonly #transport: StreamableHTTPClientTransport;

  private constructor(url: string, token: string | null, tls?: { ca: string }, sessionId?: string) {
    this.#transport = new StreamableHTTPClientTransport(new URL(url), {
      ...(sessionId !== undefined && { sessionId }),
      requestInit: token === null ? {} : { headers: { authorization: `Bearer ${token}` } },
      fetch: (input, init) => fetch(input, { ...init, ...(tls && { tls }) } as RequestInit),
    });
  }

  /** With `sessionId` it goes on in that session instead of beginning one. */
  static async connect(
    url: string,
    token: string | null = null,
    tls?: { ca: string },
    sessionId?: string,
  ): Promise<HttpClient> {
    const client = new HttpClient(url, token, tls, sessionId);
    // The SDK's own transport does not fit its own interface under exactOptionalPropertyTypes.
    await client.#client.connect(client.#transport as Parameters<Client["connect"]>[0]);
    return client;
  }

  get sessionId(): string {
    return this.#transport.sessionId!;
  }

  async toolNames(): Promise<string[]> {
    return (await this.#client.listTools()).tools.map((tool) => tool.name);
  }

  async call(
    name: string,
    args: Record<string, unknown> = {},
    options: { signal?: AbortSignal; onprogress?: () => void } = {},
  ): Promise<CallToolResult> {
    return (await this.#client.callTool({ name, arguments: args }, undefined, options)) as CallToolResult;
  }

  /** The structure of a success; throws for an error. */
  async ok(name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const { isError, content, structuredContent } = await this.call(name, args);
    if (isError) throw new Error(`${name} failed: ${JSON.stringify(content)}`);
    return structuredContent ?? {};
  }

  /** Ends the session with DELETE. */
  async terminate(): Promise<void> {
    await this.#transport.terminateSession();
  }

  /** Leaves without a word, with all its connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }
}
