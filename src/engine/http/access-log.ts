import type { Context, MiddlewareHandler } from "hono";
import { getConnInfo } from "hono/bun";
import type { Logger } from "../../base/logger.ts";
import type { JsonLines } from "../audit/json-lines.ts";
import type { EngineEnv } from "./engine-app.ts";
import { isStreamed } from "./streamed-answers.ts";

/** One line of `audit/access.jsonl`. */
interface AccessRecord {
  /** RFC 3339 */
  ts: string;
  client: string;
  method: string;
  /** Without its query, which may hold more than a log should */
  path: string;
  status: number;
  duration_ms: number;
  remote_addr: string;
  /** Of the answer's body */
  bytes: number;
}

/** Writes one record when an answer is complete, and calls `onAnswer`. */
export function accessLog(
  lines: JsonLines,
  log: Logger,
  onAnswer: (record: AccessRecord, route: string) => void,
): MiddlewareHandler<EngineEnv> {
  return async (c, next) => {
    const startedAt = performance.now();
    // Later the connection may be gone, and its address with it.
    const remote = remoteAddress(c);
    c.set("client", "");
    await next();
    const record = (bytes: number) => {
      const entry = {
        ts: new Date().toISOString(),
        client: c.get("client"),
        method: c.req.method,
        path: c.req.path,
        status: c.res.status,
        duration_ms: Math.round(performance.now() - startedAt),
        remote_addr: remote,
        bytes,
      };
      try {
        lines.append(entry);
      } catch (error) {
        // The answer is right all the same.
        log.error({ err: error }, "the access log could not be written");
      }
      onAnswer(entry, c.req.matchedRoutes.at(-1)?.path ?? "");
    };
    await countBody(c, record);
  };
}

/** Replaces the answer by the same one, counted. */
async function countBody(c: Context<EngineEnv>, done: (bytes: number) => void): Promise<void> {
  if (c.req.method === "HEAD") {
    // Whoever makes this body would wait for a reader for ever.
    await c.res.body?.cancel();
    c.res = new Response(null, c.res);
    return done(0);
  }
  const { body, headers } = c.res;
  if (body === null || !isStreamed(headers)) {
    const content = await c.res.arrayBuffer();
    c.res = new Response(body === null ? null : content, c.res);
    done(content.byteLength);
    return;
  }
  let bytes = 0;
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done: isOver } = await reader.read();
      if (isOver) {
        controller.close();
        done(bytes);
      } else {
        bytes += value.byteLength;
        controller.enqueue(value);
      }
    },
    async cancel(reason) {
      done(bytes);
      await reader.cancel(reason);
    },
  });
  c.res = new Response(counted, c.res);
}

function remoteAddress(c: Context<EngineEnv>): string {
  // Without a server below it, as in a test, there is no connection.
  if (c.env === undefined || !("server" in (c.env as object))) return "";
  return getConnInfo(c).remote.address ?? "unix";
}
