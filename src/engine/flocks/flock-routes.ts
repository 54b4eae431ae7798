import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { DEPTH_HEADER, depthHeaders, depthOf } from "../tasks/task-depth.ts";
import { taskResult } from "../tasks/task-routes.ts";
import { TASK_LIMIT_MS } from "../tasks/tasks.ts";
import { mountAgentRoutes } from "./agent-routes.ts";
import { type BroadcastResult, broadcast } from "./broadcast.ts";
import type { Flock } from "./flock.ts";
import { describeFlock, describeNewFlock, type FlockView, flockInfo, newFlock } from "./flock-info.ts";
import { broadcastRequest, flockRequest } from "./flock-request.ts";
import { mountWallRoutes } from "./wall-routes.ts";

/** Twenty VMs, one after another, and the base before them when it is missing. */
const CREATE_DEADLINE_MS = 3_600_000;
const DEADLINE_MS = 60_000;
/** A pause waits for a snapshot that is under way. */
const STANDSTILL_DEADLINE_MS = 600_000;

const flockParam = z.object({ id: z.string().max(128) });

const createFlock = createRoute({
  method: "post",
  path: "/flocks",
  summary: "Make a VM for each role, and a wall for all of them",
  middleware: routeLimits({ deadlineMs: CREATE_DEADLINE_MS, takesJson: true }),
  request: { body: { required: true, content: { "application/json": { schema: flockRequest } } } },
  responses: {
    201: { description: "All of them run", content: { "application/json": { schema: newFlock } } },
    ...errorResponses(403, 413, 415, 507),
  },
});

const listFlocks = createRoute({
  method: "get",
  path: "/flocks",
  summary: "All flocks",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  responses: {
    200: { description: "The oldest first", content: { "application/json": { schema: z.array(flockInfo) } } },
    ...errorResponses(),
  },
});

const getFlock = createRoute({
  method: "get",
  path: "/flocks/{id}",
  summary: "One flock",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: flockParam },
  responses: {
    200: { description: "As it is now", content: { "application/json": { schema: flockInfo } } },
    ...errorResponses(404),
  },
});

const deleteFlock = createRoute({
  method: "delete",
  path: "/flocks/{id}",
  summary: "End all VMs of a flock; the log of its wall stays on disk",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: flockParam },
  responses: {
    200: {
      description: "It is gone",
      content: {
        "application/json": { schema: z.object({ status: z.literal("deleted"), flock_id: z.string() }) },
      },
    },
    ...errorResponses(404),
  },
});

const standstill = z
  .object({ flock_id: z.string(), status: z.enum(["paused", "resumed"]), agents: z.int() })
  .openapi("FlockStandstill");

const standstillRoute = <Path extends "/flocks/{id}/pause" | "/flocks/{id}/resume">(
  path: Path,
  summary: string,
) =>
  createRoute({
    method: "post",
    path,
    summary,
    middleware: routeLimits({ deadlineMs: STANDSTILL_DEADLINE_MS }),
    request: { params: flockParam },
    responses: {
      200: { description: "How many do now", content: { "application/json": { schema: standstill } } },
      ...errorResponses(404, 502),
    },
  });
const pauseFlock = standstillRoute("/flocks/{id}/pause", "Let the VMs of a flock stand still");
const resumeFlock = standstillRoute("/flocks/{id}/resume", "Let the VMs of a flock go on");

const broadcastToFlock = createRoute({
  method: "post",
  path: "/flocks/{id}/broadcast",
  summary: "Give every agent of a flock the same prompt, and wait for all of them",
  middleware: routeLimits({ deadlineMs: TASK_LIMIT_MS, takesJson: true }),
  request: {
    params: flockParam,
    headers: depthHeaders,
    body: { required: true, content: { "application/json": { schema: broadcastRequest } } },
  },
  responses: {
    200: {
      description: "What each of them made of it",
      content: {
        "application/json": {
          schema: z
            .object({
              flock_id: z.string(),
              agents: z.int(),
              sent: z.int(),
              skipped: z.int(),
              failed: z.int(),
              results: z.record(
                z.string(),
                z.object({ status: z.enum(["ok", "busy", "error"]), ...taskResult.partial().shape }),
              ),
            })
            .openapi("Broadcast"),
        },
      },
    },
    ...errorResponses(404, 413, 415),
  },
});

export function mountFlockRoutes(app: EngineApp, parts: EngineParts): void {
  const { flocks, vms, tasks, audit, log, baseUrl } = parts;
  const viewOf = (flock: Flock): FlockView => ({ vms, tasks, baseUrl, isSpawning: flock.isSpawning });
  const describe = (flock: Flock) => describeFlock(flock.record, viewOf(flock));

  app.openapi(createFlock, async (c) => {
    const request = c.req.valid("json");
    const operation = { operation: "POST /flocks", tenantId: request.tenant_id };
    const flock = await auditedOperation(audit, operation, () => flocks.create(request, c.get("signal")));
    return c.json(describeNewFlock(flock.record, viewOf(flock)), 201);
  });
  app.openapi(listFlocks, (c) => c.json(flocks.list().map(describe), 200));
  app.openapi(getFlock, (c) => c.json(describe(flocks.get(c.req.valid("param").id)), 200));
  app.openapi(deleteFlock, async (c) => {
    const { id } = c.req.valid("param");
    const tenantId = flocks.tenantOf(id);
    const operation = { operation: "DELETE /flocks/{flock_id}", tenantId };
    await auditedOperation(audit, operation, () => flocks.remove(id));
    return c.json({ status: "deleted" as const, flock_id: id }, 200);
  });
  for (const [route, status] of [
    [pauseFlock, "paused"],
    [resumeFlock, "resumed"],
  ] as const) {
    app.openapi(route, async (c) => {
      const { id } = c.req.valid("param");
      const flock = flocks.get(id);
      const verb = status === "paused" ? "pause" : "resume";
      const operation = {
        operation: `POST /flocks/{flock_id}/${verb}`,
        tenantId: flock.record.tenant_id,
      };
      const agents = await auditedOperation(audit, operation, () =>
        flock.setPaused(status === "paused", c.get("signal")),
      );
      return c.json({ flock_id: id, status, agents }, 200);
    });
  }
  app.openapi(broadcastToFlock, async (c) => {
    const { record } = flocks.get(c.req.valid("param").id);
    const { body } = c.req.valid("json");
    const depth = depthOf(c.req.header(DEPTH_HEADER));
    const operation = { operation: "POST /flocks/{flock_id}/broadcast", tenantId: record.tenant_id };
    const count = (results: Map<string, BroadcastResult>, status: BroadcastResult["status"]) =>
      [...results.values()].filter((result) => result.status === status).length;
    const results = await auditedOperation(audit, operation, async (told) => {
      const request = { prompt: body, depth, signal: c.get("signal") };
      const made = await broadcast(record, { vms, tasks, log }, request);
      if (made.size > 0 && count(made, "error") === made.size) told.failure = "no agent has a result";
      return made;
    });
    return c.json(
      {
        flock_id: record.flock_id,
        agents: results.size,
        sent: count(results, "ok"),
        skipped: count(results, "busy"),
        failed: count(results, "error"),
        results: Object.fromEntries(results),
      },
      200,
    );
  });
  mountAgentRoutes(app, parts);
  mountWallRoutes(app, parts);
}
