import { z } from "@hono/zod-openapi";

const errorBody = z.object({ error: z.string() }).openapi("Error");
const quotaBody = z
  .object({
    error: z.literal("quota_exceeded"),
    resource: z.string(),
    limit: z.int(),
    used: z.int(),
    requested: z.int(),
  })
  .openapi("QuotaExceeded");

const WORDS: Readonly<Record<number, string>> = {
  400: "The request is not what the API takes",
  403: "The tenant may not do this, or a web page asked",
  404: "There is no such thing",
  409: "It cannot be done in this state",
  413: "The body is too large",
  415: "The body is not JSON",
  500: "The engine, or what it was to do, failed",
  502: "The guest's agent is not reachable",
  503: "The guest runs another task, or the engine ends",
  408: "The body did not come in time",
  504: "It took longer than the route's deadline",
  507: "The disk is full, or nearly so",
  508: "Too many tasks led to this one",
};

/** What every route can answer besides what is its own */
const ALWAYS = [400, 403, 408, 413, 500, 503, 504, 507];

/** `responses` of a route's definition for these statuses, and for those every route has. */
export function errorResponses(...statuses: number[]) {
  const all = [...new Set([...statuses, ...ALWAYS])].sort();
  return {
    401: {
      description: "No valid token",
      headers: z.object({ "WWW-Authenticate": z.string() }),
      content: { "application/json": { schema: errorBody } },
    },
    ...Object.fromEntries(
      all.map((status) => [status, { description: WORDS[status] ?? "", content: contentOf(status) }]),
    ),
  };
}

function contentOf(status: number) {
  const schema = status === 403 ? z.union([quotaBody, errorBody]) : errorBody;
  return { "application/json": { schema }, "text/plain": { schema: z.string() } };
}
