import type { BearerTokens } from "../../src/config/bearer-tokens.ts";
import { loadHttpSettings } from "../../src/config/load-http-settings.ts";
import type { HttpBodies } from "../../src/mcp/http-bodies.ts";
import { HttpEndpoint } from "../../src/mcp/http-endpoint.ts";
import { HttpGate } from "../../src/mcp/http-gate.ts";
import { HttpListener } from "../../src/mcp/http-listener.ts";
import { HttpSessions } from "../../src/mcp/http-sessions.ts";
import { LazySessions } from "../../src/mcp/lazy-sessions.ts";
import { SessionToolHost } from "../../src/mcp/tool-host.ts";
import type { SessionService } from "../../src/session/session-service.ts";
import { FakeSessions } from "../contract/fake-sessions.ts";

export const ACCEPT = "application/json, text/event-stream";
/** What a stream says before any event */
export const OPENED = ": open\n\n";
const FACTS = { idleMs: 600_000, net: false, egress: { kind: "deny_all" }, tools: "all" } as const;
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const INITIALIZE = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "raw", version: "1" },
};

export interface FixtureOptions {
  env?: Record<string, string>;
  bodies?: HttpBodies;
  sessions?: SessionService;
}

/** The HTTP server of this process in front of scripted sessions, on a free port of the loopback. */
export class HttpFixture implements AsyncDisposable {
  readonly sessions: HttpSessions;
  readonly tokens: BearerTokens;
  readonly port: number;
  readonly #listener: HttpListener;
  readonly #host: SessionToolHost;

  private constructor(
    listener: HttpListener,
    sessions: HttpSessions,
    host: SessionToolHost,
    tokens: BearerTokens,
  ) {
    const { address } = listener;
    if ("unix" in address) throw new Error("the fixture listens on TCP");
    this.port = address.port;
    this.#listener = listener;
    this.sessions = sessions;
    this.#host = host;
    this.tokens = tokens;
  }

  static async start({ env = {}, bodies, sessions }: FixtureOptions = {}): Promise<HttpFixture> {
    const all = loadHttpSettings(env, { http: "127.0.0.1:0" });
    const shared = new LazySessions(async () => sessions ?? new FakeSessions());
    const host = new SessionToolHost(FACTS, shared, SILENT);
    const gate = new HttpGate(all);
    const table = new HttpSessions({
      host,
      maxClients: all.maxClients,
      idleMs: all.idleMs,
      isCurrent: (principal) => gate.isCurrent(principal),
      log: SILENT,
    });
    const endpoint = new HttpEndpoint(gate, table, SILENT, bodies);
    const listener = await HttpListener.open({
      address: all.listen,
      tls: null,
      fetch: (request) => endpoint.fetch(request),
    });
    return new HttpFixture(listener, table, host, all.tokens);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** A request as it is; its body is JSON unless it is text already. */
  fetch(method: string, headers: Record<string, string> = {}, body?: unknown): Promise<Response> {
    return fetch(this.url, {
      method,
      headers: { accept: ACCEPT, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  }

  /** A client that was initialized. */
  async client(headers: Record<string, string> = {}): Promise<HttpFixtureClient> {
    const response = await this.fetch("POST", headers, request(0, "initialize", INITIALIZE));
    const id = response.headers.get("mcp-session-id");
    if (id === null) throw new Error(`no session: ${response.status} ${await response.text()}`);
    await response.text();
    return new HttpFixtureClient(this, {
      ...headers,
      "mcp-session-id": id,
      "mcp-protocol-version": "2025-11-25",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host[Symbol.asyncDispose]();
    await this.sessions.endAll();
    await this.#listener.close();
  }
}

/** The headers of one MCP session, and requests with them. */
export class HttpFixtureClient {
  readonly headers: Record<string, string>;
  readonly #fixture: HttpFixture;
  #lastId = 0;

  constructor(fixture: HttpFixture, headers: Record<string, string>) {
    this.#fixture = fixture;
    this.headers = headers;
  }

  send(method: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.#fixture.fetch(method, { ...this.headers, ...headers }, body);
  }

  /** The answer's text, and the structure of its result. */
  async call(name: string, args: Record<string, unknown> = {}, id = ++this.#lastId): Promise<CallAnswer> {
    const response = await this.send("POST", request(id, "tools/call", { name, arguments: args }));
    return readAnswer(await response.text());
  }

  /** The id of a new VM session. */
  async open(): Promise<string> {
    return String((await this.call("open_session")).fields["session_id"]);
  }
}

export interface CallAnswer {
  isError: boolean;
  text: string;
  fields: Record<string, unknown>;
}

export function request(id: number, method: string, params: unknown = {}) {
  return { jsonrpc: "2.0", id, method, params };
}

/** The last message of a stream, as a tool's answer. */
export function readAnswer(stream: string): CallAnswer {
  const data = [...stream.matchAll(/^data: (.+)$/gm)].at(-1)?.[1];
  if (data === undefined) throw new Error(`no answer in ${JSON.stringify(stream.slice(0, 200))}`);
  const { result } = JSON.parse(data);
  return {
    isError: result.isError === true,
    text: result.content[0].text,
    fields: result.structuredContent ?? {},
  };
}
