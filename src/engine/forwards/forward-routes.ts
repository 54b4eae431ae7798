import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { vmIdParam } from "../vms/vm-fields.ts";

const DEADLINE_MS = 30_000;
const port = z.int().min(1).max(65_535);
const forward = z.object({ guest_port: port, host_port: port }).openapi("Forward");

const openForward = createRoute({
  method: "post",
  path: "/vms/{id}/forwards",
  summary: "Let a port of this machine's loopback lead to one of the guest's",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS, takesJson: true }),
  request: {
    params: vmIdParam,
    body: {
      required: true,
      content: {
        "application/json": {
          schema: z.object({ guest_port: port, host_port: z.int().min(0).max(65_535).nullish() }),
        },
      },
    },
  },
  responses: {
    201: { description: "It leads there", content: { "application/json": { schema: forward } } },
    ...errorResponses(404, 409, 415, 502),
  },
});

const listForwards = createRoute({
  method: "get",
  path: "/vms/{id}/forwards",
  summary: "The forwarded ports of a VM",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam },
  responses: {
    200: { description: "The oldest first", content: { "application/json": { schema: z.array(forward) } } },
    ...errorResponses(404),
  },
});

const closeForward = createRoute({
  method: "delete",
  path: "/vms/{id}/forwards/{host_port}",
  summary: "Close a forwarded port and its connections",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: {
    params: vmIdParam.extend({
      host_port: z
        .string()
        .regex(/^\d{1,5}$/, "must be a port")
        .transform(Number)
        .openapi({ type: "integer", minimum: 0, maximum: 99_999 }),
    }),
  },
  responses: {
    200: {
      description: "It is closed",
      content: {
        "application/json": { schema: z.object({ status: z.literal("closed"), host_port: z.int() }) },
      },
    },
    ...errorResponses(404),
  },
});

export function mountForwardRoutes(app: EngineApp, { vms, forwards, audit }: EngineParts): void {
  app.openapi(openForward, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const { guest_port: guestPort, host_port: hostPort } = c.req.valid("json");
    const operation = "POST /vms/{vm_id}/forwards";
    const about = { operation, tenantId: vm.record.tenant_id, vmId: vm.id };
    const opened = await auditedOperation(audit, about, () => forwards.open(vm, guestPort, hostPort ?? 0));
    return c.json(opened, 201);
  });
  app.openapi(listForwards, (c) => {
    const vm = vms.get(c.req.valid("param").id);
    return c.json(vm.isRunning ? vm.record.forwards : [], 200);
  });
  app.openapi(closeForward, async (c) => {
    const { id, host_port: hostPort } = c.req.valid("param");
    const vm = vms.get(id);
    const operation = "DELETE /vms/{vm_id}/forwards/{host_port}";
    const about = { operation, tenantId: vm.record.tenant_id, vmId: vm.id };
    await auditedOperation(audit, about, () => forwards.close(vm, hostPort));
    return c.json({ status: "closed" as const, host_port: hostPort }, 200);
  });
}
