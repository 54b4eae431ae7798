import { createRoute, z } from "@hono/zod-openapi";
import type { RunHandle } from "../../guest/run-handle.ts";
import { auditedOperation } from "../audit/audited-operation.ts";
import { EngineError } from "../engine-error.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { vmIdParam } from "../vms/vm-fields.ts";
import { DEPTH_HEADER, depthHeaders, depthOf } from "./task-depth.ts";
import { taskStream } from "./task-stream.ts";
import { TASK_LIMIT_MS, type TaskResult } from "./tasks.ts";

/** For what comes before and after the task itself */
const MARGIN_MS = 60_000;

/** Part of a path in the guest, maybe. Empty as if it were not there */
const SESSION = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$/;

export const taskResult = z
  .object({
    output: z.string(),
    output_truncated: z.literal(true).optional(),
    output_bytes: z.int().optional(),
    output_path: z.string().optional(),
    error: z.string().optional(),
  })
  .openapi("TaskResult");
const resultBody = { "application/json": { schema: taskResult } };

const runTask = createRoute({
  method: "post",
  path: "/vms/{id}/tasks",
  summary: "Give a prompt to the program in a VM",
  middleware: routeLimits({ deadlineMs: TASK_LIMIT_MS + MARGIN_MS, takesJson: true }),
  request: {
    params: vmIdParam,
    query: z.object({ stream: z.string().optional() }),
    headers: depthHeaders,
    body: {
      required: true,
      content: {
        "application/json": {
          schema: z
            .object({
              prompt: z.string().optional().openapi({ minLength: 1 }),
              session: z.string().optional().openapi({ pattern: SESSION.source }),
            })
            .openapi({ required: ["prompt"] }),
        },
      },
    },
  },
  responses: {
    200: {
      description: "What it printed; as a stream its frames, of which the last is the result",
      content: { ...resultBody, "application/x-ndjson": { schema: z.string() } },
    },
    ...errorResponses(403, 404, 409, 413, 415, 502, 503, 508),
    500: { description: "The task failed; what it printed until then", content: resultBody },
  },
});

export function mountTaskRoutes(app: EngineApp, { vms, tasks, audit }: EngineParts): void {
  app.openapi(runTask, async (c) => {
    const vm = vms.get(c.req.valid("param").id);
    const { prompt = "", session = "" } = c.req.valid("json");
    const depth = depthOf(c.req.header(DEPTH_HEADER));
    const about = { operation: "POST /vms/{vm_id}/tasks", tenantId: vm.record.tenant_id, vmId: vm.id };
    const cancel = new AbortController();
    const signal = AbortSignal.any([c.get("signal"), cancel.signal]);
    const begun = Promise.withResolvers<RunHandle>();
    const result = auditedOperation(audit, about, async (told): Promise<TaskResult> => {
      if (prompt === "") throw new EngineError(400, "prompt_required", "prompt required");
      if (!SESSION.test(session)) throw new EngineError(400, "invalid_session", "invalid session");
      const request = { prompt, session: session || undefined, depth, signal, onStart: begun.resolve };
      const done = await tasks.run(vm, request);
      if (done.error !== undefined) told.failure = "the task failed";
      return done;
    });
    if (c.req.valid("query").stream !== "1") {
      const done = await result;
      return c.json(done, done.error === undefined ? 200 : 500);
    }
    // What is refused before it begins is answered as without a stream.
    const run = await Promise.race([begun.promise, result.then(() => begun.promise)]);
    const frames = taskStream(run, result, () => cancel.abort(new Error("the client is gone")));
    // The route's type knows answers that are held in memory only.
    return c.body(frames, 200, { "content-type": "application/x-ndjson" }) as never;
  });
}
