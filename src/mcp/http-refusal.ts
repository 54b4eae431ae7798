import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import type { LineRefusal } from "./read-message.ts";

/** Codes the SDK's transport answers with, from the range JSON-RPC leaves to servers */
const SERVER_ERROR = -32000;
const SESSION_NOT_FOUND = -32001;

/** An HTTP answer to a request that reaches no MCP session, with a JSON-RPC error as its body. */
export function refusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  const code = status === 404 ? SESSION_NOT_FOUND : SERVER_ERROR;
  return answer(status, { jsonrpc: "2.0", id: null, error: { code, message } }, headers);
}

/** The same for a body that is no message. */
export function badMessage(read: LineRefusal): Response {
  return answer(400, read);
}

/** The same for a message that makes no sense where it is. */
export function badRequest(id: string | number | null, message: string): Response {
  return answer(400, { jsonrpc: "2.0", id, error: { code: ErrorCode.InvalidRequest, message } });
}

function answer(status: number, body: LineRefusal, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status, headers: { "Cache-Control": "no-store", ...headers } });
}
