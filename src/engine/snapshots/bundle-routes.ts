import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { bundleRefused } from "./bundle-error.ts";
import { BUNDLE_TYPE } from "./bundle-manifest.ts";
import { snapshotFields } from "./snapshot-record.ts";
import { SNAPSHOT_DEADLINE_MS, snapshotIdParam } from "./snapshot-routes.ts";

/** For a bundle of a GiB over a slow line */
const IMPORT_DEADLINE_MS = 3_600_000;

const bundle = z.string().openapi({ format: "binary" });
const failure = z.object({ error: z.string(), reason: z.string().optional() }).openapi("BundleError");

const exportSnapshot = createRoute({
  method: "post",
  path: "/snapshots/{id}/export",
  summary: "A snapshot as one tar archive",
  middleware: routeLimits({ deadlineMs: SNAPSHOT_DEADLINE_MS }),
  request: { params: snapshotIdParam },
  responses: {
    200: { description: "The bundle", content: { [BUNDLE_TYPE]: { schema: bundle } } },
    ...errorResponses(404),
    500: { description: "It cannot be exported", content: { "application/json": { schema: failure } } },
  },
});

const { snapshot_id, snapshot_type, base_snapshot_id } = snapshotFields;
const imported = z
  .object({
    snapshot_id,
    snapshot_type,
    base_snapshot_id,
    status: z.enum(["imported", "already_present"]),
    skipped: z.boolean(),
  })
  .openapi("ImportedSnapshot");

const IMPORT_FAILURES = {
  400: "It is refused; reason says why",
  409: "It is refused; reason says why",
  500: "This engine cannot take it up; reason says why",
  503: "Four others are on their way, or the engine ends",
};

const importSnapshot = createRoute({
  method: "post",
  path: "/snapshots/import",
  summary: "Take up a snapshot another engine exported",
  middleware: routeLimits({ deadlineMs: IMPORT_DEADLINE_MS, bodyBytes: null }),
  request: { body: { required: true, content: { [BUNDLE_TYPE]: { schema: bundle } } } },
  responses: {
    200: { description: "It is here already", content: { "application/json": { schema: imported } } },
    201: { description: "It is on disk", content: { "application/json": { schema: imported } } },
    ...errorResponses(403, 507),
    ...Object.fromEntries(
      Object.entries(IMPORT_FAILURES).map(([status, description]) => [
        status,
        { description, content: { "application/json": { schema: failure } } },
      ]),
    ),
  },
});

export function mountBundleRoutes(app: EngineApp, { snapshots, audit }: EngineParts): void {
  app.openapi(exportSnapshot, async (c) => {
    const { id } = c.req.valid("param");
    const tenantId = snapshots.tenantOf(id);
    const { stream } = await auditedOperation(
      audit,
      { operation: "POST /snapshots/{snapshot_id}/export", tenantId },
      () => snapshots.export(id, c.get("signal")),
    );
    return c.body(stream, 200, { "content-type": BUNDLE_TYPE });
  });
  app.openapi(importSnapshot, async (c) => {
    const type = c.req.header("content-type")?.split(";")[0]?.trim().toLowerCase();
    if (type !== BUNDLE_TYPE)
      throw bundleRefused("invalid_snapshot_bundle", `content type must be ${BUNDLE_TYPE}`);
    const { body } = c.req.raw;
    if (!body) throw bundleRefused("invalid_snapshot_bundle", "the archive is empty");
    const taken = await auditedOperation(audit, { operation: "POST /snapshots/import" }, async (told) => {
      const result = await snapshots.import(body, c.get("signal")).catch((error) => {
        // What is left of the bundle would be taken for the next request.
        c.header("Connection", "close");
        throw error;
      });
      told.tenantId = snapshots.tenantOf(result.snapshot_id);
      return result;
    });
    return taken.skipped ? c.json(taken, 200) : c.json(taken, 201);
  });
}
