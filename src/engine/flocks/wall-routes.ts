import { createRoute, z } from "@hono/zod-openapi";
import { Places } from "../../base/places.ts";
import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { errorResponses } from "../http/error-schemas.ts";
import { routeLimits } from "../http/route-limits.ts";
import { postRequest } from "./flock-request.ts";
import { TIME_PATTERN } from "./wall/wall-filter.ts";
import { wallMessage } from "./wall/wall-message.ts";
import { wallStream } from "./wall/wall-stream.ts";

const DEADLINE_MS = 30_000;
/** Each may hold 32 MiB of messages several times over. */
const HISTORIES_AT_ONCE = 2;

const flockParam = z.object({ id: z.string().max(128) });
const text = z
  .string()
  .optional()
  .transform((value) => value || undefined);
/** In `ms` since 1970 */
const time = z
  .string()
  .regex(new RegExp(`^$|${TIME_PATTERN.source}`), "must be RFC3339")
  .optional()
  .transform((value) => (value ? Date.parse(value) : undefined));

const post = createRoute({
  method: "post",
  path: "/flocks/{id}/post",
  summary: "Post on the wall of a flock in the name of one of its agents; 1 MiB at most",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS, takesJson: true }),
  request: {
    params: flockParam,
    body: { required: true, content: { "application/json": { schema: postRequest } } },
  },
  responses: {
    200: { description: "It is on disk", content: { "application/json": { schema: wallMessage } } },
    ...errorResponses(403, 404, 413, 415, 503, 507),
  },
});

const history = createRoute({
  method: "get",
  path: "/flocks/{id}/wall/history",
  summary: "Messages of a wall, the oldest first; of more than 32 MiB the newest",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: {
    params: flockParam,
    query: z.object({ agent_id: text, since: time, until: time, contains: text }),
  },
  responses: {
    200: {
      description: "Those asked for",
      content: { "application/json": { schema: z.array(wallMessage) } },
    },
    ...errorResponses(404),
  },
});

/** Of each event, as OpenAPI before 3.2 has it */
const event = z.object({ data: z.string().openapi({ description: "A WallMessage as JSON" }) });

const wall = createRoute({
  method: "get",
  path: "/flocks/{id}/wall",
  summary: "Everything on a wall, and then whatever is posted, until the flock ends",
  middleware: routeLimits({ deadlineMs: DEADLINE_MS }),
  request: { params: flockParam },
  responses: {
    200: {
      description: "Server-sent events, each with a message as its data",
      content: { "text/event-stream": { schema: event } },
    },
    ...errorResponses(404, 503),
  },
});

export function mountWallRoutes(app: EngineApp, { flocks }: EngineParts): void {
  const histories = new Places(HISTORIES_AT_ONCE);
  app.openapi(post, async (c) => {
    const flock = flocks.get(c.req.valid("param").id);
    const { agent_id: agentId, body } = c.req.valid("json");
    return c.json(await flock.post(agentId, body), 200);
  });
  app.openapi(history, async (c) => {
    const flock = flocks.get(c.req.valid("param").id);
    const { agent_id: agentId, since, until, contains } = c.req.valid("query");
    const filter = { agentId, since, until, contains };
    const signal = c.get("signal");
    using _place = await histories.wait(signal);
    return c.json(await flock.wall.history(filter, signal), 200);
  });
  app.openapi(wall, (c) => {
    const reader = flocks.get(c.req.valid("param").id).wall.read();
    c.get("signal").addEventListener("abort", () => reader.cutOff(), { once: true });
    return new Response(wallStream(reader), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
    });
  });
}
