import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type EngineError, jsonError } from "../engine-error.ts";
import type { EngineEnv } from "./engine-app.ts";

/** Enough for every JSON body of the API */
export const JSON_BODY_BYTES = 1_048_576;

/** For a sender to bring all of it, in `ms`: a route's own deadline may be a day */
const BODY_MS = 60_000;

export interface RouteLimits {
  /** Of the request; default 1 MiB. Null for a route that reads it as a stream, and bounds it by what it finds in it */
  bodyBytes?: number | null;
  /** For the whole body, in `ms`, where it is read into memory */
  bodyMs?: number;
  /** What answers a body beyond; default 413 "request body too large" */
  tooLarge?: EngineError;
  /** From the request to the answer's start, in `ms` */
  deadlineMs: number;
  /** The body is JSON; any other type of content is refused */
  takesJson?: boolean;
}

/** The limits of one route, for `middleware` of its definition. */
export function routeLimits(limits: RouteLimits): MiddlewareHandler<EngineEnv>[] {
  const tooLarge = limits.tooLarge ?? jsonError(413, "too_large", "request body too large");
  const maxSize = limits.bodyBytes ?? JSON_BODY_BYTES;
  const onError = () => {
    throw tooLarge;
  };
  return [
    deadline(limits.deadlineMs),
    ...(limits.bodyBytes === null
      ? []
      : bodyInTime(bodyLimit({ maxSize, onError }), limits.bodyMs ?? BODY_MS)),
    ...(limits.takesJson ? [jsonOnly] : []),
  ];
}

function deadline(deadlineMs: number): MiddlewareHandler<EngineEnv> {
  return async (c, next) => {
    const over = new AbortController();
    const late = jsonError(504, "deadline", `no answer within ${deadlineMs / 1000} s`);
    const timer = setTimeout(() => over.abort(late), deadlineMs);
    c.set("signal", AbortSignal.any([c.req.raw.signal, over.signal]));
    const { promise: expired, reject } = Promise.withResolvers<never>();
    over.signal.addEventListener("abort", () => reject(late), { once: true });
    try {
      await Promise.race([next(), expired]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Reads the body, of a length the limit allows, before the route does anything. */
function bodyInTime(limit: MiddlewareHandler<EngineEnv>, bodyMs: number): MiddlewareHandler<EngineEnv>[] {
  const begin: MiddlewareHandler<EngineEnv> = async (c, next) => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const slow = jsonError(408, "slow_body", `the body did not come within ${bodyMs / 1000} s`);
    const timer = setTimeout(() => {
      // What is left of it would be taken for the next request.
      c.header("Connection", "close");
      reject(slow);
    }, bodyMs);
    c.set("bodyIsHere", () => clearTimeout(timer));
    try {
      await Promise.race([next(), late]);
    } finally {
      clearTimeout(timer);
    }
  };
  const end: MiddlewareHandler<EngineEnv> = async (c, next) => {
    await c.req.arrayBuffer();
    c.get("bodyIsHere")();
    await next();
  };
  return [begin, limit, end];
}

const jsonOnly: MiddlewareHandler<EngineEnv> = async (c, next) => {
  const { headers } = c.req.raw;
  const hasBody = headers.has("transfer-encoding") || Number(headers.get("content-length") ?? 0) > 0;
  const type = headers.get("content-type") ?? "";
  if (hasBody && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    throw jsonError(415, "unsupported_media_type", "content type must be application/json");
  // A client that names a type and sends nothing means an empty object.
  if (!hasBody && type !== "") headers.delete("content-type");
  await next();
};
