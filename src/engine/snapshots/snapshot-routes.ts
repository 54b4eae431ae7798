import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import { EngineError } from "../engine-error.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { tenantIdField, vmIdParam } from "../vms/vm-fields.ts";
import { snapshotObject } from "./snapshot-record.ts";

/** Whole memories are copied and hashed, and one operation waits for another. */
export const SNAPSHOT_DEADLINE_MS = 600_000;
const LIST_DEADLINE_MS = 30_000;
/** Paths beside those of snapshots */
const NO_IDS = ["gc", "import"];

export const snapshotIdParam = z.object({ id: z.string().max(128) });
const answer = snapshotObject.openapi("Snapshot");

const typeField = z.preprocess(
  (value) => (typeof value === "string" ? value.toLowerCase() : (value ?? "")),
  z.enum(["", "full", "diff"], { error: "type must be empty, full, or diff" }).default(""),
);

const takeSnapshot = createRoute({
  method: "post",
  path: "/vms/{id}/snapshot",
  summary: "Take a snapshot of a VM",
  middleware: routeLimits({ deadlineMs: SNAPSHOT_DEADLINE_MS, takesJson: true }),
  request: {
    params: vmIdParam,
    body: {
      required: false,
      content: {
        "application/json": {
          schema: z.object({
            stop_after: z.boolean().nullish(),
            type: typeField,
            tenant_id: tenantIdField,
          }),
        },
      },
    },
  },
  responses: {
    201: { description: "It is on disk", content: { "application/json": { schema: answer } } },
    ...errorResponses(403, 404, 409, 413, 415, 502, 507),
  },
});

const listSnapshots = createRoute({
  method: "get",
  path: "/snapshots",
  summary: "All snapshots",
  middleware: routeLimits({ deadlineMs: LIST_DEADLINE_MS }),
  responses: {
    200: { description: "The oldest first", content: { "application/json": { schema: z.array(answer) } } },
    ...errorResponses(),
  },
});

const deleteSnapshot = createRoute({
  method: "delete",
  path: "/snapshots/{id}",
  summary: "Delete a snapshot nothing stands on",
  middleware: routeLimits({ deadlineMs: SNAPSHOT_DEADLINE_MS }),
  request: { params: snapshotIdParam },
  responses: {
    200: {
      description: "It is gone",
      content: {
        "application/json": { schema: z.object({ status: z.literal("deleted"), snapshot_id: z.string() }) },
      },
    },
    ...errorResponses(404, 409),
  },
});

export function mountSnapshotRoutes(app: EngineApp, { snapshots, vms, audit }: EngineParts): void {
  app.openapi(takeSnapshot, async (c) => {
    const { id } = c.req.valid("param");
    const { type = "", stop_after, tenant_id } = c.req.valid("json") ?? {};
    const tenantId = vms.has(id) ? vms.get(id).record.tenant_id : tenant_id;
    const operation = { operation: "POST /vms/{vm_id}/snapshot", tenantId, vmId: id };
    const request = { type, tenantId: tenant_id, stopAfter: stop_after ?? false };
    const taken = await auditedOperation(audit, operation, () =>
      snapshots.take(id, request, c.get("signal")),
    );
    return c.json(taken, 201);
  });
  app.openapi(listSnapshots, (c) => c.json(snapshots.list(), 200));
  app.openapi(deleteSnapshot, async (c) => {
    const { id } = c.req.valid("param");
    if (NO_IDS.includes(id)) {
      c.header("Allow", "POST");
      throw new EngineError(405, "method_not_allowed", "method not allowed");
    }
    const tenantId = snapshots.tenantOf(id);
    await auditedOperation(audit, { operation: "DELETE /snapshots/{snapshot_id}", tenantId }, () =>
      snapshots.delete(id, c.get("signal")),
    );
    return c.json({ status: "deleted" as const, snapshot_id: id }, 200);
  });
}
