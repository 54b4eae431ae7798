import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { vmIdParam } from "../vms/vm-fields.ts";
import { DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S, runWorkload } from "./workload.ts";

const MARGIN_MS = 60_000;
/** What of the rules for its path a schema can say */
const SCRIPT_PATTERN = String.raw`^workloads\/(?![\s\S]*\.\.)[^\\\x00\r\n\u2028\u2029]*[^\\\x00\r\n\u2028\u2029\/]\.sh$`;

const workload = createRoute({
  method: "post",
  path: "/vms/{id}/workloads/run",
  summary: "Run a script below workloads/ of the workspace",
  middleware: routeLimits({ deadlineMs: MAX_TIMEOUT_S * 1000 + MARGIN_MS, takesJson: true }),
  request: {
    params: vmIdParam,
    body: {
      required: true,
      content: {
        "application/json": {
          schema: z.object({
            script: z.string().openapi({ pattern: SCRIPT_PATTERN }),
            timeout_seconds: z.int().min(0).max(MAX_TIMEOUT_S).optional(),
          }),
        },
      },
    },
  },
  responses: {
    200: {
      description: "How it ended, whatever that was",
      content: {
        "application/json": {
          schema: z
            .object({
              script: z.string(),
              exit_code: z.int(),
              stdout: z.string(),
              stderr: z.string(),
              duration_ms: z.int(),
              timed_out: z.boolean(),
              stdout_truncated: z.boolean().optional(),
              stderr_truncated: z.boolean().optional(),
            })
            .openapi("WorkloadResult"),
        },
      },
    },
    ...errorResponses(404, 409, 413, 415, 502),
  },
});

export function mountWorkloadRoutes(app: EngineApp, { vms, audit }: EngineParts): void {
  app.openapi(workload, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const { script, timeout_seconds: asked } = c.req.valid("json");
    const operation = "POST /vms/{vm_id}/workloads/run";
    const about = { operation, tenantId: vm.record.tenant_id, vmId: vm.id };
    // 0 means the default, as it does for a client that leaves it out.
    const timeoutS = asked || DEFAULT_TIMEOUT_S;
    const result = await auditedOperation(audit, about, () =>
      runWorkload(vm, script, timeoutS, c.get("signal")),
    );
    return c.json(result, 200);
  });
}
