import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import {
  CancelledNotificationSchema,
  ErrorCode,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import type { Logger } from "../base/logger.ts";
import { randomId } from "../base/random-id.ts";
import type { Principal } from "./http-gate.ts";
import { badRequest, refusal } from "./http-refusal.ts";
import { createMcpServer } from "./server.ts";
import type { ClientTools, Stake } from "./tool-host.ts";
import { type StreamEnd, watchStream } from "./watch-stream.ts";

/** Requests of one session at once; an agent's own limit is far below */
const MAX_REQUESTS = 128;

/** One MCP session over HTTP: its tools, and the requests whose answers its client still waits for. */
export class HttpSession {
  readonly principal: Principal;
  readonly #client: ClientTools;
  readonly #log: Logger;
  readonly #server: Server;
  readonly #transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomId("mcp_"),
  });
  readonly #pending = new Set<RequestId>();
  readonly #drained: (() => void)[] = [];
  #openStreams = 0;
  #usedAt = performance.now();
  #ending: Promise<void> | null = null;

  private constructor(principal: Principal, client: ClientTools, log: Logger) {
    this.principal = principal;
    this.#client = client;
    this.#log = log;
    this.#server = createMcpServer(client.tools, log);
  }

  static async open(principal: Principal, client: ClientTools, log: Logger): Promise<HttpSession> {
    const session = new HttpSession(principal, client, log);
    await session.#server.connect(session.#transport);
    return session;
  }

  /** Undefined until it was initialized */
  get id(): string | undefined {
    return this.#transport.sessionId;
  }

  get stake(): Stake {
    return this.#client.stake();
  }

  /** Time since the last stream ended, in `ms`; 0 while one is open */
  idleMs(now: number): number {
    return this.#openStreams > 0 ? 0 : now - this.#usedAt;
  }

  /** Answers a request of its client; `message` is the body of a POST. */
  async handle(request: Request, message?: JSONRPCMessage): Promise<Response> {
    if (request.method === "GET") this.#transport.closeStandaloneSSEStream(); // the newest stream is the live one
    if (message === undefined) return this.#watched(request, await this.#transport.handleRequest(request));
    const id = isJSONRPCRequest(message) ? message.id : null;
    if (id !== null) {
      if (this.#pending.has(id))
        return badRequest(id, `A request with the id ${id} is still being answered.`);
      if (this.#pending.size >= MAX_REQUESTS)
        return refusal(429, `${MAX_REQUESTS} requests of this session are being answered. Wait for one.`);
      this.#pending.add(id);
    }
    const response = await this.#transport.handleRequest(request, { parsedBody: message });
    this.#endCancelled(message);
    return this.#watched(request, response, id);
  }

  /** Ends what is its client's alone; calls in flight are answered first. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    try {
      await this.#client.tools[Symbol.asyncDispose]();
    } catch (error) {
      this.#log.error({ err: error }, "what belongs to an MCP session did not end");
    }
    await new Promise(setImmediate); // failed calls write their answers in this turn
    await this.#server.close();
  }

  /** Resolves when every stream has ended. */
  drained(): Promise<void> {
    if (this.#openStreams === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  #watched(request: Request, response: Response, id: RequestId | null = null): Response {
    this.#usedAt = performance.now();
    if (response.body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
      if (id !== null) this.#pending.delete(id);
      return response;
    }
    this.#openStreams += 1;
    const onEnd = (end: StreamEnd) => this.#streamEnded(id, end);
    const body = watchStream(response.body, { onEnd, signal: request.signal });
    return new Response(body, { status: response.status, headers: response.headers });
  }

  #streamEnded(id: RequestId | null, end: StreamEnd): void {
    this.#openStreams -= 1;
    this.#usedAt = performance.now();
    if (id !== null) {
      if (end === "left") this.#abandon(id);
      this.#pending.delete(id);
    }
    if (this.#openStreams === 0) for (const resolve of this.#drained.splice(0)) resolve();
  }

  /** Nobody would get the answer: the call is cancelled as if its client had said so. */
  #abandon(requestId: RequestId): void {
    const params = { requestId, reason: "the client has left" };
    this.#transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#forget(requestId);
  }

  /** A cancelled call has no answer, so nothing else would end its stream. */
  #endCancelled(message: JSONRPCMessage): void {
    const { success, data } = CancelledNotificationSchema.safeParse(message);
    const requestId = success ? data.params.requestId : undefined;
    if (requestId === undefined || !this.#pending.has(requestId)) return;
    this.#transport.closeSSEStream(requestId);
    this.#forget(requestId);
  }

  /** The transport drops a request when its answer is sent, also when no stream is there to take it. */
  #forget(id: RequestId): void {
    const error = { code: ErrorCode.ConnectionClosed, message: "The call was cancelled." };
    this.#transport.send({ jsonrpc: "2.0", id, error }).catch((cause: unknown) => {
      this.#log.debug({ err: cause }, "a cancelled call has no answer");
    });
  }
}
