import { createRoute, z } from "@hono/zod-openapi";
import type { MiddlewareHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp, EngineEnv } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { egressPolicyField, tenantIdField } from "../vms/vm-fields.ts";
import { vmInfo } from "../vms/vm-info.ts";
import { type RestoreCode, restoreError } from "./restore-error.ts";
import { SNAPSHOT_DEADLINE_MS, snapshotIdParam } from "./snapshot-routes.ts";

const CODES: Readonly<Record<string, RestoreCode>> = {
  tenant_id: "invalid_tenant_id",
  egress_policy: "invalid_egress_policy",
};

const failure = z
  .object({ error: z.string(), code: z.string().optional(), source_snapshot_id: z.string().optional() })
  .openapi("RestoreError");

/** A body that is no JSON is refused before the route sees it. */
const withCode: MiddlewareHandler<EngineEnv> = async (c, next) => {
  await next();
  if (c.error instanceof HTTPException && c.error.status === 400) {
    const { status, body } = restoreError("invalid_restore_request", "invalid JSON body", c.req.param("id"));
    c.res = Response.json(body, { status });
  }
};

const restoreSnapshot = createRoute({
  method: "post",
  path: "/snapshots/{id}/restore",
  summary: "Make a VM that goes on from a snapshot",
  middleware: [withCode, ...routeLimits({ deadlineMs: SNAPSHOT_DEADLINE_MS, takesJson: true })],
  request: {
    params: snapshotIdParam,
    body: {
      required: false,
      content: {
        "application/json": {
          schema: z.object({ tenant_id: tenantIdField, egress_policy: egressPolicyField }),
        },
      },
    },
  },
  responses: {
    201: { description: "It runs", content: { "application/json": { schema: vmInfo } } },
    ...errorResponses(413, 415),
    ...Object.fromEntries(
      [400, 403, 404, 409, 500, 507].map((status) => [
        status,
        {
          description: "It cannot be restored; code says why",
          content: { "application/json": { schema: failure } },
        },
      ]),
    ),
  },
});

export function mountRestoreRoutes(app: EngineApp, { snapshots, audit }: EngineParts): void {
  app.openapi(
    restoreSnapshot,
    async (c) => {
      const { id } = c.req.valid("param");
      const { tenant_id, egress_policy } = c.req.valid("json") ?? {};
      const operation = {
        operation: "POST /snapshots/{snapshot_id}/restore",
        tenantId: snapshots.tenantOf(id) ?? tenant_id,
      };
      const restored = await auditedOperation(audit, operation, async (told) => {
        const request = { tenantId: tenant_id, egressPolicy: egress_policy };
        const vm = await snapshots.restore(id, request, c.get("signal"));
        told.vmId = vm.vm_id;
        return vm;
      });
      return c.json(restored, 201);
    },
    (result, c) => {
      if (result.success) return undefined;
      const [issue] = result.error.issues;
      const code = CODES[String(issue?.path[0])] ?? "invalid_restore_request";
      throw restoreError(code, issue?.message ?? "invalid request", c.req.param("id"));
    },
  );
}
