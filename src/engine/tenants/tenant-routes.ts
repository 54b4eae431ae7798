import { createRoute, z } from "@hono/zod-openapi";
import { TENANT_ID_PATTERN, TENANT_ID_RULE } from "../../base/tenant-id.ts";
import { auditedOperation } from "../audit/audited-operation.ts";
import { jsonError } from "../engine-error.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { quotaSchema } from "./tenants.ts";

const DEADLINE_MS = 10_000;
const quota = quotaSchema.openapi("Quota");
const tenant = z.object({ tenant_id: z.string(), quota, usage: quota }).openapi("Tenant");
const params = z.object({ id: z.string().regex(TENANT_ID_PATTERN, `tenant_id must be ${TENANT_ID_RULE}`) });
const body = (schema: z.ZodType) => ({ "application/json": { schema } });

const listTenants = createRoute({
  method: "get",
  path: "/tenants",
  summary: "All tenants with a quota",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  responses: { 200: { description: "By id", content: body(z.array(tenant)) }, ...errorResponses() },
});

const getTenant = createRoute({
  method: "get",
  path: "/tenants/{id}",
  summary: "A tenant's quota, and what it uses of it",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params },
  responses: { 200: { description: "Counted now", content: body(tenant) }, ...errorResponses(404) },
});

const putTenant = createRoute({
  method: "put",
  path: "/tenants/{id}",
  summary: "Set a tenant's quota; 0 is unlimited",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS, takesJson: true }),
  request: {
    params,
    body: { required: true, content: { "application/json": { schema: z.object({ quota }) } } },
  },
  responses: { 200: { description: "It is set", content: body(tenant) }, ...errorResponses(413, 415) },
});

export function mountTenantRoutes(app: EngineApp, { tenants, audit }: EngineParts): void {
  app.openapi(listTenants, (c) => c.json(tenants.list(), 200));
  app.openapi(getTenant, (c) => {
    const found = tenants.get(c.req.valid("param").id);
    if (found === null) throw jsonError(404, "tenant_not_found", "tenant not found");
    return c.json(found, 200);
  });
  app.openapi(putTenant, async (c) => {
    const { id } = c.req.valid("param");
    const wanted = c.req.valid("json").quota;
    const about = { operation: "PUT /tenants/{tenant_id}", tenantId: id };
    return c.json(await auditedOperation(audit, about, () => tenants.put(id, wanted)), 200);
  });
}
