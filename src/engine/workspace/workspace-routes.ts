import { createRoute, z } from "@hono/zod-openapi";
import { auditedOperation } from "../audit/audited-operation.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { vmIdParam } from "../vms/vm-fields.ts";
import { FILE_LIMIT_BYTES, fileTooLarge, readWorkspaceFile, writeWorkspaceFile } from "./workspace.ts";
import { WORKSPACE_PATH_PATTERN, workspacePath } from "./workspace-path.ts";

/** Moving 4 MiB takes well below a second; a loaded machine may take long. */
const DEADLINE_MS = 120_000;
const pathQuery = z.object({
  path: z
    .string()
    .optional()
    .openapi({ param: { required: true }, pattern: WORKSPACE_PATH_PATTERN }),
});
const bytes = { "application/octet-stream": { schema: z.string().openapi({ format: "binary" }) } };

const putFile = createRoute({
  method: "put",
  path: "/vms/{id}/workspace",
  summary: "Write a file below /workspace",
  middleware: routeLimits({
    deadlineMs: DEADLINE_MS,
    bodyBytes: FILE_LIMIT_BYTES,
    tooLarge: fileTooLarge,
  }),
  request: {
    params: vmIdParam,
    query: pathQuery.extend({ overwrite: z.enum(["true", "false"]).optional() }),
    body: { content: bytes },
  },
  responses: {
    200: {
      description: "It is written",
      content: { "application/json": { schema: z.object({ path: z.string(), bytes: z.int() }) } },
    },
    ...errorResponses(404, 409, 413, 502, 507),
  },
});

const getFile = createRoute({
  method: "get",
  path: "/vms/{id}/workspace",
  summary: "Read a file below /workspace",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: vmIdParam, query: pathQuery },
  responses: {
    200: { description: "Its content", content: bytes },
    ...errorResponses(404, 409, 413, 502),
  },
});

export function mountWorkspaceRoutes(app: EngineApp, { vms, audit }: EngineParts): void {
  app.openapi(putFile, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const query = c.req.valid("query");
    const operation = "PUT /vms/{vm_id}/workspace";
    const about = { operation, tenantId: vm.record.tenant_id, vmId: vm.id };
    return await auditedOperation(audit, about, async () => {
      const path = workspacePath(query.path ?? "");
      const content = new Uint8Array(await c.req.arrayBuffer());
      const overwrite = query.overwrite === "true";
      await writeWorkspaceFile(vm, path, content, { overwrite, signal: c.get("signal") });
      return c.json({ path, bytes: content.byteLength }, 200);
    });
  });
  app.openapi(getFile, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const operation = "GET /vms/{vm_id}/workspace";
    const about = { operation, tenantId: vm.record.tenant_id, vmId: vm.id };
    return await auditedOperation(audit, about, async () => {
      const path = workspacePath(c.req.valid("query").path ?? "");
      const content = await readWorkspaceFile(vm, path, c.get("signal"));
      return c.body(Buffer.from(content), 200, { "content-type": "application/octet-stream" });
    });
  });
}
