import { STATUS_CODES } from "node:http";
import type { Channel } from "./channel.ts";
import { INTERNAL_NAME } from "./destination.ts";
import type { EgressGate, InternalDoor } from "./egress-gate.ts";
import { readBody } from "./http-body.ts";
import { type BodyFraming, badRequest } from "./http-head.ts";
import type { HttpRequest } from "./http-request.ts";
import { inTime } from "./in-time.ts";

/** A message for the wall, each character escaped, and what is around it */
const MAX_BODY_BYTES = 524_288;
const WITHOUT_BODY = new Set(["GET", "HEAD"]);
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
class BoundedBytes {
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

/**
 * Answers one request to the gate's door; true when it was the last of its connection. A body is collected before it is
 * answered, so only where there is a door, a few at a time, and by a deadline.
 */
export async function serveInternal(
  gate: EgressGate,
  client: Channel,
  request: HttpRequest,
): Promise<boolean> {
  const hasBody = request.framing.kind === "chunked" || request.framing.bytes > 0;
  if (gate.internal === null) {
    const isLast = request.isLast || hasBody;
    await client.write(await encodeAnswer({ ...request, isLast }, nothingHere()));
    return isLast;
  }
  if (!hasBody) return await answer(gate.internal, client, request, new Uint8Array());
  if (WITHOUT_BODY.has(request.method)) throw badRequest(`${request.method} takes no body`);
  const { handshakeMs } = gate.limits;
  const giveUp = new AbortController();
  try {
    using _place = await inTime(gate.internalBodies.wait(giveUp.signal), handshakeMs, "its turn");
    const body = await inTime(collect(client, request.framing), handshakeMs, "the body");
    return await answer(gate.internal, client, request, body);
  } finally {
    giveUp.abort();
  }
}

async function collect(client: Channel, framing: BodyFraming): Promise<Uint8Array<ArrayBuffer>> {
  const content = new BoundedBytes(MAX_BODY_BYTES);
  await readBody(client, framing, (piece) => content.append(piece));
  return content.bytes();
}

async function answer(
  door: InternalDoor,
  client: Channel,
  request: HttpRequest,
  content: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const response = (await door(toRequest(request, content))) ?? nothingHere();
  await client.write(await encodeAnswer(request, response));
  return request.isLast;
}

async function encodeAnswer(request: HttpRequest, answer: Response): Promise<Uint8Array> {
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
  const hasBody = !WITHOUT_BODY.has(method);
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
