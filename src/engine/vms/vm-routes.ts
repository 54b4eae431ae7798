import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import { EngineError } from "../engine-error.ts";
import type { EngineParts } from "../engine-parts.ts";
import { FLOCK_ID } from "../flocks/flock-record.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import type { EngineVm } from "./engine-vm.ts";
import {
  egressPolicyField,
  labelField,
  profileField,
  tenantIdField,
  tokenField,
  vmIdParam,
} from "./vm-fields.ts";
import { describeVm, vmInfo } from "./vm-info.ts";
import { vmStats } from "./vm-stats.ts";

/** A missing base is built first, which takes minutes without acceleration. */
const CREATE_DEADLINE_MS = 600_000;
const DEADLINE_MS = 30_000;
const createVm = createRoute({
  method: "post",
  path: "/vms",
  summary: "Make a VM",
  middleware: routeLimits({ deadlineMs: CREATE_DEADLINE_MS, takesJson: true }),
  request: {
    body: {
      required: false,
      content: {
        "application/json": {
          schema: z.object({
            profile: profileField,
            tenant_id: tenantIdField,
            egress_policy: egressPolicyField,
            flock_id: labelField
              .refine(
                (id) => id === undefined || !FLOCK_ID.test(id),
                "is of this engine's own; POST /flocks/{id}/agents adds to one",
              )
              .openapi({ not: { type: "string", pattern: FLOCK_ID.source } }),
            agent_id: labelField,
            control_plane_token: tokenField,
          }),
        },
      },
    },
  },
  responses: {
    201: {
      description: "It runs",
      content: {
        "application/json": { schema: vmInfo.extend({ agent_token: z.string() }).openapi("NewVm") },
      },
    },
    ...errorResponses(403, 413, 415, 507),
  },
});

const listedVm = vmInfo.extend({ stats: vmStats.optional() }).openapi("ListedVm");

const listVms = createRoute({
  method: "get",
  path: "/vms",
  summary: "All VMs",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { query: z.object({ stats: z.enum(["true", "false"]).optional() }) },
  responses: {
    200: { description: "The oldest first", content: { "application/json": { schema: z.array(listedVm) } } },
    ...errorResponses(),
  },
});

const deleteVm = createRoute({
  method: "delete",
  path: "/vms/{id}",
  summary: "End a VM and remove all of it",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam },
  responses: {
    200: {
      description: "It is gone",
      content: {
        "application/json": { schema: z.object({ status: z.literal("stopped"), vm_id: z.string() }) },
      },
    },
    ...errorResponses(404),
  },
});

export function mountVmRoutes(app: EngineApp, { vms, meter, audit, baseUrl }: EngineParts): void {
  app.openapi(createVm, async (c) => {
    const body = c.req.valid("json");
    const vm = await auditedOperation(audit, { operation: "POST /vms", tenantId: body.tenant_id }, (told) =>
      vms
        .create(
          {
            profile: body.profile ?? "",
            tenantId: body.tenant_id,
            egressPolicy: body.egress_policy,
            flockId: body.flock_id,
            agentId: body.agent_id,
            controlPlaneToken: body.control_plane_token,
          },
          c.get("signal"),
        )
        .then((made) => {
          told.vmId = made.id;
          return made;
        }),
    );
    return c.json({ ...describeVm(vm, baseUrl()), agent_token: vm.record.agent_token }, 201);
  });
  app.openapi(listVms, (c) => {
    const withStats = c.req.valid("query").stats === "true";
    const describe = (vm: EngineVm) => ({
      ...describeVm(vm, baseUrl()),
      ...(withStats && vm.isRunning && { stats: meter.measure(vm) }),
    });
    return c.json(vms.list().map(describe), 200);
  });
  app.openapi(deleteVm, async (c) => {
    const { id } = c.req.valid("param");
    if (!vms.has(id)) throw new EngineError(404, "vm_not_found", "VM not found");
    const tenantId = vms.get(id).record.tenant_id;
    await auditedOperation(audit, { operation: "DELETE /vms/{vm_id}", tenantId, vmId: id }, () =>
      vms.remove(id),
    );
    return c.json({ status: "stopped" as const, vm_id: id }, 200);
  });
}
