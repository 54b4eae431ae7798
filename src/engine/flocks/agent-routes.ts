import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { describeVm, vmInfo } from "../vms/vm-info.ts";
import type { Flock } from "./flock.ts";
import { type AgentRequest, agentRequest } from "./flock-request.ts";

/** A missing base is built first, which takes minutes without acceleration. */
const CREATE_DEADLINE_MS = 600_000;
const DEADLINE_MS = 30_000;

const flockParam = z.object({ id: z.string().max(128) });
const agentParam = flockParam.extend({ agent: z.string().max(256) });
const body = { required: true, content: { "application/json": { schema: agentRequest } } };

const addAgent = createRoute({
  method: "post",
  path: "/flocks/{id}/agents",
  summary: "Add an agent to a flock",
  middleware: routeLimits({ deadlineMs: CREATE_DEADLINE_MS, takesJson: true }),
  request: { params: flockParam, body },
  responses: {
    201: {
      description: "Its VM runs",
      content: {
        "application/json": {
          schema: z
            .object({ agent_id: z.string(), role: z.string(), vm_id: z.string(), agent_url: z.string() })
            .openapi("NewAgent"),
        },
      },
    },
    ...errorResponses(403, 404, 409, 413, 415, 507),
  },
});

const removeAgent = createRoute({
  method: "delete",
  path: "/flocks/{id}/agents/{agent}",
  summary: "End an agent's VM and take it out of its flock",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: agentParam },
  responses: {
    200: {
      description: "It is gone",
      content: {
        "application/json": {
          schema: z.object({ flock_id: z.string(), agent_id: z.string(), status: z.literal("removed") }),
        },
      },
    },
    ...errorResponses(404),
  },
});

const replaced = { description: "Its new VM runs", content: { "application/json": { schema: vmInfo } } };

const changeAgent = createRoute({
  method: "patch",
  path: "/flocks/{id}/agents/{agent}",
  summary: "Give an agent another role, and with it a new VM",
  middleware: routeLimits({ deadlineMs: CREATE_DEADLINE_MS, takesJson: true }),
  request: { params: agentParam, body },
  responses: { 200: replaced, ...errorResponses(403, 404, 409, 413, 415, 507) },
});

const restartAgent = createRoute({
  method: "post",
  path: "/flocks/{id}/agents/{agent}/restart",
  summary: "Give an agent a new VM",
  middleware: routeLimits({ deadlineMs: CREATE_DEADLINE_MS }),
  request: { params: agentParam },
  responses: { 200: replaced, ...errorResponses(403, 404, 409, 507) },
});

export function mountAgentRoutes(app: EngineApp, { flocks, audit, baseUrl }: EngineParts): void {
  const audited = async <T>(flock: Flock, operation: string, work: () => Promise<T>): Promise<T> =>
    await auditedOperation(audit, { operation, tenantId: flock.record.tenant_id }, work);
  const replace = async (flock: Flock, agent: string, change: AgentRequest | null, signal: AbortSignal) => {
    const path = "/flocks/{flock_id}/agents/{agent_id}";
    const operation = change ? `PATCH ${path}` : `POST ${path}/restart`;
    const vm = await audited(flock, operation, () => flock.replace(agent, change, signal));
    return describeVm(vm, baseUrl());
  };

  app.openapi(addAgent, async (c) => {
    const flock = flocks.get(c.req.valid("param").id);
    const request = c.req.valid("json");
    const { agent_id, role, vm_id } = await audited(flock, "POST /flocks/{flock_id}/agents", () =>
      flock.add(request, c.get("signal")),
    );
    return c.json({ agent_id, role, vm_id, agent_url: `${baseUrl()}/vms/${vm_id}` }, 201);
  });
  app.openapi(removeAgent, async (c) => {
    const { id, agent } = c.req.valid("param");
    const flock = flocks.get(id);
    await audited(flock, "DELETE /flocks/{flock_id}/agents/{agent_id}", () =>
      flock.removeMember(agent, c.get("signal")),
    );
    return c.json({ flock_id: id, agent_id: agent, status: "removed" as const }, 200);
  });
  app.openapi(changeAgent, async (c) => {
    const { id, agent } = c.req.valid("param");
    return c.json(await replace(flocks.get(id), agent, c.req.valid("json"), c.get("signal")), 200);
  });
  app.openapi(restartAgent, async (c) => {
    const { id, agent } = c.req.valid("param");
    return c.json(await replace(flocks.get(id), agent, null, c.get("signal")), 200);
  });
}
