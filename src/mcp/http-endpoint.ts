import { isInitializeRequest, type JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Logger } from "../base/logger.ts";
import { HttpBodies } from "./http-bodies.ts";
import type { HttpGate, Principal } from "./http-gate.ts";
import { badMessage, badRequest, refusal } from "./http-refusal.ts";
import type { HttpSession } from "./http-session.ts";
import type { HttpSessions } from "./http-sessions.ts";
import { readMessage } from "./read-message.ts";

export const MCP_PATH = "/mcp";
/** As long as a message over stdio, in `bytes` */
export const MAX_BODY_BYTES = 64 * 1_048_576;
/** Of a message that begins a session */
const MAX_INITIALIZE_BYTES = 1_048_576;
const SESSION_HEADER = "mcp-session-id";

/** Streamable HTTP of MCP: one path, where each request finds its session or begins one. */
export class HttpEndpoint {
  readonly #gate: HttpGate;
  readonly #sessions: HttpSessions;
  readonly #bodies: HttpBodies;
  readonly #log: Logger;
  #isClosing = false;

  constructor(gate: HttpGate, sessions: HttpSessions, log: Logger, bodies = new HttpBodies()) {
    this.#gate = gate;
    this.#sessions = sessions;
    this.#bodies = bodies;
    this.#log = log;
  }

  /** From now on no request begins anything. */
  close(): void {
    this.#isClosing = true;
  }

  async fetch(request: Request): Promise<Response> {
    try {
      return this.#gate.share(request, await this.#answer(request));
    } catch (error) {
      this.#log.error({ err: error }, "a request failed in a way that is a bug");
      return refusal(500, "The server hit a bug of its own; its stderr has the details.");
    }
  }

  async #answer(request: Request): Promise<Response> {
    const admitted = this.#gate.admit(request);
    if (admitted instanceof Response) return admitted;
    if (new URL(request.url).pathname !== MCP_PATH)
      return refusal(404, `There is nothing here; MCP is at ${MCP_PATH}.`);
    if (!["GET", "POST", "DELETE"].includes(request.method))
      return refusal(405, "Use POST, GET or DELETE.", { Allow: "GET, POST, DELETE" });
    if (this.#isClosing) return refusal(503, "The server is shutting down. Start it again to go on.");
    const { principal } = admitted;
    const id = request.headers.get(SESSION_HEADER);
    if (id === null) return await this.#begin(request, principal);
    const session = this.#sessions.find(id, principal);
    if (session === null)
      return refusal(404, "There is no such MCP session, or it has ended. Initialize a new one.");
    return await this.#continue(request, id, session);
  }

  async #begin(request: Request, principal: Principal): Promise<Response> {
    if (request.method !== "POST") return refusal(400, "The header Mcp-Session-Id is missing.");
    const message = await this.#receive(request, MAX_INITIALIZE_BYTES);
    if (message instanceof Response) return message;
    if (!isInitializeRequest(message))
      return badRequest(null, "The header Mcp-Session-Id is missing, and this is no initialize request.");
    const begun = await this.#sessions.begin(principal, (session) => session.handle(request, message));
    return (
      begun ??
      refusal(503, "All MCP sessions are in use. End one with DELETE, or raise IGN_MCP_HTTP_MAX_CLIENTS.", {
        "Retry-After": "60",
      })
    );
  }

  async #continue(request: Request, id: string, session: HttpSession): Promise<Response> {
    if (request.method === "POST") {
      const message = await this.#receive(request, MAX_BODY_BYTES);
      return message instanceof Response ? message : await session.handle(request, message);
    }
    if (request.method === "GET") return await session.handle(request);
    await this.#sessions.end(id, "its client ended it");
    return new Response(null, { status: 204 });
  }

  async #receive(request: Request, limitBytes: number): Promise<JSONRPCMessage | Response> {
    const bytes = await this.#bodies.read(request, limitBytes);
    if (bytes instanceof Response) return bytes;
    const read = readMessage({ kind: "line", bytes }, limitBytes);
    if (read === null) return badRequest(null, "The body is empty. Send one JSON-RPC message.");
    return "refusal" in read ? badMessage(read.refusal) : read.message;
  }
}
