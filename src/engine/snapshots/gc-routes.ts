import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { snapshotFields } from "./snapshot-record.ts";
import { SNAPSHOT_DEADLINE_MS } from "./snapshot-routes.ts";

const amount = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const policy = z.object({
  older_than_seconds: amount,
  keep_last_per_vm: amount,
  max_total_bytes: amount,
});
const { snapshot_id, source_vm_id, snapshot_type, base_snapshot_id } = snapshotFields;
const entry = z
  .object({
    snapshot_id,
    source_vm_id,
    snapshot_type,
    base_snapshot_id,
    created_at: z.string(),
    size_bytes: amount,
    reasons: z.array(
      z.enum(["older_than", "keep_last_per_vm", "max_total_bytes", "referenced_by_diff", "source_snapshot"]),
    ),
  })
  .openapi("CollectedSnapshot");

const collect = createRoute({
  method: "post",
  path: "/snapshots/gc",
  summary: "Delete snapshots by a policy, or tell which would go",
  middleware: routeLimits({ deadlineMs: SNAPSHOT_DEADLINE_MS, takesJson: true }),
  request: {
    body: {
      required: false,
      content: {
        "application/json": {
          schema: z.object({
            older_than_seconds: amount.nullish(),
            keep_last_per_vm: amount.nullish(),
            max_total_bytes: amount.nullish(),
            apply: z.boolean().nullish(),
          }),
        },
      },
    },
  },
  responses: {
    200: {
      description: "What went, or would go",
      content: {
        "application/json": {
          schema: z
            .object({
              applied: z.boolean(),
              requested_at: z.string(),
              policy,
              candidates: z.array(entry),
              protected: z.array(entry),
              deleted: z.array(z.string()),
              errors: z.array(z.object({ snapshot_id: z.string(), error: z.string() })),
            })
            .openapi("CollectionReport"),
        },
      },
    },
    ...errorResponses(413, 415, 507),
  },
});

export function mountGcRoutes(app: EngineApp, { snapshots, audit }: EngineParts): void {
  app.openapi(collect, async (c) => {
    const { older_than_seconds, keep_last_per_vm, max_total_bytes, apply } = c.req.valid("json") ?? {};
    const wanted = {
      older_than_seconds: older_than_seconds ?? 0,
      keep_last_per_vm: keep_last_per_vm ?? 0,
      max_total_bytes: max_total_bytes ?? 0,
    };
    const report = await auditedOperation(audit, { operation: "POST /snapshots/gc" }, () =>
      snapshots.collect(wanted, apply ?? false, c.get("signal")),
    );
    return c.json(report, 200);
  });
}
