import { createRoute, z } from "@hono/zod-openapi";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "./engine-app.ts";
import { errorResponses } from "./error-schemas.ts";
import { routeLimits } from "./route-limits.ts";

const health = createRoute({
  method: "get",
  path: "/health",
  summary: "Whether the engine is up, and what it has",
  middleware: routeLimits({ deadlineMs: 10_000 }),
  responses: {
    200: {
      description: "It is up",
      content: {
        "application/json": {
          schema: z.object({
            status: z.literal("ok"),
            vm_count: z.int(),
            snapshot_count: z.int(),
            auth_enabled: z.boolean(),
          }),
        },
      },
    },
    ...errorResponses(),
  },
});

export function mountHealthRoutes(
  app: EngineApp,
  { vms, gate }: EngineParts,
  snapshotCount: () => number,
): void {
  app.openapi(health, (c) =>
    c.json(
      {
        status: "ok" as const,
        vm_count: vms.list().length,
        snapshot_count: snapshotCount(),
        auth_enabled: !gate.isOpen,
      },
      200,
    ),
  );
}
