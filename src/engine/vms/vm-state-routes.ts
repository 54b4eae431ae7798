import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import { EngineError } from "../engine-error.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { agentFailure } from "../tasks/agent-failure.ts";
import { agentUnreachable } from "./engine-vm.ts";
import { vmIdParam } from "./vm-fields.ts";
import { vmStats } from "./vm-stats.ts";

const DEADLINE_MS = 30_000;

const health = createRoute({
  method: "get",
  path: "/vms/{id}/health",
  summary: "Whether the agent in a VM answers, and whether it has a task",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam },
  responses: {
    200: {
      description: "It answers",
      content: { "application/json": { schema: z.object({ status: z.enum(["idle", "busy"]) }) } },
    },
    ...errorResponses(404, 409, 502),
  },
});

const stop = createRoute({
  method: "post",
  path: "/vms/{id}/stop",
  summary: "Halt the guest; the VM stays in the list until it is deleted",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam },
  responses: {
    200: {
      description: "It is halted",
      content: { "application/json": { schema: z.object({ status: z.literal("stopping") }) } },
    },
    ...errorResponses(404, 502),
  },
});

const stats = createRoute({
  method: "get",
  path: "/vms/{id}/stats",
  summary: "What a VM uses",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam },
  responses: {
    200: { description: "Measured now", content: { "application/json": { schema: vmStats } } },
    ...errorResponses(404, 502),
  },
});

export function mountVmStateRoutes(app: EngineApp, { vms, tasks, meter, audit }: EngineParts): void {
  app.openapi(health, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const signal = c.get("signal");
    try {
      await vm.awake.ping(signal);
    } catch (error) {
      const failure = agentFailure(error, signal);
      const isTold = failure instanceof EngineError || signal.aborted;
      throw isTold ? failure : agentUnreachable((error as Error).message, error);
    }
    return c.json({ status: tasks.isBusy(vm.id) ? ("busy" as const) : ("idle" as const) }, 200);
  });
  app.openapi(stop, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const about = { operation: "POST /vms/{vm_id}/stop", tenantId: vm.record.tenant_id, vmId: vm.id };
    await auditedOperation(audit, about, () => vm.stop());
    return c.json({ status: "stopping" as const }, 200);
  });
  app.openapi(stats, (c) => c.json(meter.measure(vms.get(c.req.valid("param").id)), 200));
}
