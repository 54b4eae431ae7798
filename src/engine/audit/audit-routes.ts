import { createRoute, z } from "@hono/zod-openapi";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { auditedOperation } from "./audited-operation.ts";

const DEADLINE_MS = 60_000;
const DEFAULT_ACCESS_RECORDS = 100;
const MAX_ACCESS_RECORDS = 1000;
const MAX_RUNTIME_RECORDS = 100_000;

/** A number in a query: digits only. */
function count(max: number) {
  return z
    .string()
    .regex(/^\d{1,9}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().max(max))
    .openapi({ type: "integer", minimum: 0, maximum: max });
}

const records = z.object({ records: z.array(z.looseObject({})) });
const limit = z.int().min(0).max(1_000_000_000).default(0);

const readRuntime = createRoute({
  method: "get",
  path: "/audit/runtime",
  summary: "What was done to the engine",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: {
    query: z.object({ tenant_id: z.string().optional(), limit: count(MAX_RUNTIME_RECORDS).optional() }),
  },
  responses: {
    200: {
      description: "The newest ones, 1000 unless another number is asked for, the oldest of them first",
      content: { "application/json": { schema: records } },
    },
    ...errorResponses(),
  },
});

const pruneRuntime = createRoute({
  method: "post",
  path: "/audit/runtime/prune",
  summary: "Remove old records; 0 is no limit",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS, takesJson: true }),
  request: {
    body: {
      required: false,
      content: {
        "application/json": { schema: z.object({ keep_last: limit, max_age_seconds: limit }) },
      },
    },
  },
  responses: {
    200: {
      description: "The newest 1000 of what is left",
      content: { "application/json": { schema: records } },
    },
    ...errorResponses(413, 415),
  },
});

const readAccess = createRoute({
  method: "get",
  path: "/audit",
  summary: "The last requests, the newest first",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: {
    query: z.object({
      limit: count(MAX_ACCESS_RECORDS).optional(),
      client: z.string().optional(),
      status: count(599).optional(),
      method: z.string().optional(),
    }),
  },
  responses: {
    200: {
      description: "As they were logged",
      content: {
        "application/json": {
          schema: z.array(
            z
              .looseObject({
                ts: z.string(),
                client: z.string(),
                method: z.string(),
                path: z.string(),
                status: z.int(),
                duration_ms: z.int(),
                remote_addr: z.string(),
                bytes: z.int(),
              })
              .openapi("AccessRecord"),
          ),
        },
      },
    },
    ...errorResponses(),
  },
});

export function mountAuditRoutes(app: EngineApp, { audit, access }: EngineParts): void {
  app.openapi(readRuntime, async (c) => {
    const { tenant_id: tenantId, limit } = c.req.valid("query");
    return c.json({ records: await audit.read(tenantId || undefined, limit ?? 0) }, 200);
  });
  app.openapi(pruneRuntime, async (c) => {
    const { keep_last: keepLast, max_age_seconds: maxAgeS } = c.req.valid("json");
    const records = await auditedOperation(audit, { operation: "POST /audit/runtime/prune" }, async () => {
      await audit.prune({ keepLast, maxAgeS });
      return await audit.read(undefined, 0);
    });
    return c.json({ records }, 200);
  });
  app.openapi(readAccess, async (c) => {
    const { limit, client, status, method } = c.req.valid("query");
    const matching = await access.newest(
      limit || DEFAULT_ACCESS_RECORDS,
      (record) =>
        (!client || record["client"] === client) &&
        (!status || record["status"] === status) &&
        (!method || record["method"] === method.toUpperCase()),
    );
    return c.json(matching.reverse() as never, 200);
  });
}
