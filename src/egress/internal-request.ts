import { STATUS_CODES } from "node:http";
import { INTERNAL_NAME } from "./destination.ts";
import type { EgressGate } from "./egress-gate.ts";
import { badRequest } from "./http-head.ts";
import type { HttpRequest } from "./http-request.ts";

export const MAX_INTERNAL_BODY_BYTES = 1_048_576;
const WITHOUT_CONTENT = new Set([204, 205, 304]);
/** Written anew, for the connection to the guest */
const OURS = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "trailer",
]);

/** Collects pieces up to a limit. */
export class BoundedBytes {
  readonly #limitBytes: number;
  readonly #pieces: Uint8Array[] = [];
  #count = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Throws `bad_request` beyond the limit. */
  append(piece: Uint8Array): void {
    this.#count += piece.byteLength;
    if (this.#count > this.#limitBytes)
      throw badRequest(`${INTERNAL_NAME} takes ${this.#limitBytes} bytes at most`);
    this.#pieces.push(piece);
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(Buffer.concat(this.#pieces));
  }
}

/** The whole answer of the gate's door to one request, as the guest gets it. */
export async function answerInternal(
  gate: EgressGate,
  request: HttpRequest,
  content: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const answer = (await gate.internal?.(toRequest(request, content))) ?? nothingHere();
  const body = Buffer.from(await answer.arrayBuffer());
  const lines = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}`];
  for (const [name, value] of answer.headers) if (!OURS.has(name)) lines.push(`${name}: ${value}`);
  const hasContent = !WITHOUT_CONTENT.has(answer.status);
  if (hasContent) lines.push(`content-length: ${body.byteLength}`);
  if (request.isLast) lines.push("connection: close");
  else if (request.minorVersion === 0) lines.push("connection: keep-alive");
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  return hasContent && request.method !== "HEAD" ? Buffer.concat([head, body]) : head;
}

function toRequest({ method, path, fields }: HttpRequest, content: Uint8Array<ArrayBuffer>): Request {
  const hasBody = method !== "GET" && method !== "HEAD";
  const headers = fields.map(([name, value]): [string, string] => [name, value]);
  try {
    return new Request(`http://${INTERNAL_NAME}${path}`, { method, headers, body: hasBody ? content : null });
  } catch (error) {
    throw badRequest(`${INTERNAL_NAME} cannot take it (${(error as Error).message})`);
  }
}

function nothingHere(): Response {
  return new Response("there is nothing here\n", {
    status: 404,
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
}
