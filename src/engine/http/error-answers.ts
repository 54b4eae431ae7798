import { HTTPException } from "hono/http-exception";
import type { Logger } from "../../base/logger.ts";
import { diskFull } from "../disk-full.ts";
import { EngineError, jsonError } from "../engine-error.ts";
import type { EngineApp } from "./engine-app.ts";

/** What nginx writes for a client that went away before its answer */
const CLIENT_GONE = 499;

/** Turns whatever a route throws into its answer; a bug is logged and answered 500 without its words. */
export function answerErrors(app: EngineApp, log: Logger): void {
  app.onError((error, c) => {
    // Nobody reads it; the status is for the access log.
    if (c.req.raw.signal.aborted && !(error instanceof EngineError)) return c.body(null, CLIENT_GONE as 500);
    const { status, body } = asEngineError(error, log);
    return typeof body === "string" ? c.text(body, status) : c.json(body, status);
  });
}

function asEngineError(error: Error, log: Logger): EngineError {
  if (error instanceof EngineError) return error;
  if (error instanceof HTTPException && error.status < 500)
    return jsonError(error.status, "bad_request", "invalid JSON body", {}, error);
  const full = diskFull(error);
  if (full) return full;
  log.error({ err: error }, "a request failed");
  return jsonError(500, "internal", "internal error", {}, error);
}
