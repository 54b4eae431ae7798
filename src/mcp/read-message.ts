import {
  ErrorCode,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { parseJson } from "../base/parse-json.ts";
import type { Line } from "./line-splitter.ts";

/** An answer to a line that is no message; the id is null when the line did not give it away. */
export interface LineRefusal {
  jsonrpc: "2.0";
  id: RequestId | null;
  error: { code: number; message: string };
}

export type ReadLine = { message: JSONRPCMessage } | { refusal: LineRefusal };

/** Turns one line into a JSON-RPC message, or into the error to answer with. Null for a blank line. */
export function readMessage(line: Line, limitBytes: number): ReadLine | null {
  if (line.kind === "oversize") {
    const limit = `the limit is ${limitBytes} bytes. Send large files in parts.`;
    return refuse(findRequestId(line), ErrorCode.InvalidRequest, `The message is too long; ${limit}`);
  }
  const text = Buffer.from(line.bytes.buffer, line.bytes.byteOffset, line.bytes.length).toString("utf8");
  if (text.trim() === "") return null;
  const value = parseJson(text);
  if (value === undefined) {
    return refuse(
      null,
      ErrorCode.ParseError,
      "The line is not JSON. Send one JSON-RPC message a line, in UTF-8.",
    );
  }
  const parsed = JSONRPCMessageSchema.safeParse(value);
  if (parsed.success) return { message: parsed.data };
  const why = Array.isArray(value)
    ? "Batches are not supported"
    : "The line is JSON but no JSON-RPC 2.0 message";
  return refuse(idOf(value), ErrorCode.InvalidRequest, `${why}. Send one JSON-RPC message a line.`);
}

function refuse(id: RequestId | null, code: number, message: string): ReadLine {
  return { refusal: { jsonrpc: "2.0", id, error: { code, message } } };
}

function idOf(value: unknown): RequestId | null {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  return typeof value.id === "string" || typeof value.id === "number" ? value.id : null;
}

const ID = String.raw`"id"\s*:\s*(-?\d{1,15}|"(?:[^"\\]|\\.){0,256}")`;
const SIMPLE_MEMBER = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,256}"`;
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${SIMPLE_MEMBER}\s*,\s*){0,2}${ID}\s*,`);
const ID_AT_END = new RegExp(String.raw`[,{]\s*${ID}\s*(?:,\s*${SIMPLE_MEMBER}\s*){0,2}\}\s*$`);

/** Clients write the id before or after the long part. Anchored to the ends, so an id inside it is never taken. */
function findRequestId({ head, tail }: { head: Uint8Array; tail: Uint8Array }): RequestId | null {
  const decoder = new TextDecoder();
  const match = ID_AT_START.exec(decoder.decode(head)) ?? ID_AT_END.exec(decoder.decode(tail));
  return match?.[1] === undefined ? null : idOf({ id: parseJson(match[1]) });
}
