import type { ContentfulStatusCode } from "hono/utils/http-status";
import { Fault } from "../base/fault.ts";

/** What a client is answered: an object becomes JSON, a string plain text. */
export type ErrorBody = string | Readonly<Record<string, unknown>>;

/** A request that cannot be done. `http/error-answers.ts` is the only place that turns one into an answer. */
export class EngineError extends Fault<string> {
  readonly status: ContentfulStatusCode;
  readonly body: ErrorBody;

  constructor(status: ContentfulStatusCode, code: string, body: ErrorBody, cause?: unknown) {
    super(code, typeof body === "string" ? body : String(body["error"] ?? code), cause);
    this.status = status;
    this.body = body;
  }
}

/** Answered as `{"error": text}` and what `more` holds. */
export function jsonError(
  status: ContentfulStatusCode,
  code: string,
  text: string,
  more: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): EngineError {
  return new EngineError(status, code, { error: text, ...more }, cause);
}

export function badRequest(text: string): EngineError {
  return jsonError(400, "bad_request", text);
}

export function vmNotFound(): EngineError {
  return jsonError(404, "vm_not_found", "vm not found");
}
