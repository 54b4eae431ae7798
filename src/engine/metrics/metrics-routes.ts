import { createRoute, z } from "@hono/zod-openapi";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { vmStats } from "../vms/vm-stats.ts";

const DEADLINE_MS = 30_000;

const readMetrics = createRoute({
  method: "get",
  path: "/metrics",
  summary: "What the engine counts, for Prometheus",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  responses: {
    200: { description: "The text format", content: { "text/plain": { schema: z.string() } } },
    ...errorResponses(),
  },
});

const readVmMetrics = createRoute({
  method: "get",
  path: "/metrics/vms",
  summary: "What each running VM uses",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  responses: {
    200: { description: "Measured now", content: { "application/json": { schema: z.array(vmStats) } } },
    ...errorResponses(),
  },
});

export function mountMetricsRoutes(app: EngineApp, { metrics }: EngineParts): void {
  app.openapi(readMetrics, async (c) => {
    const { registry } = metrics;
    return c.text(await registry.metrics(), 200, { "content-type": registry.contentType });
  });
  app.openapi(readVmMetrics, (c) => c.json(metrics.measureVms(), 200));
}
