import { z } from "@hono/zod-openapi";
import { parseJson } from "../../../base/parse-json.ts";

/** One message of a Town Wall, on the wire and on disk. */
export const wallMessage = z
  .object({
    /** From 1, without gaps, for as long as the flock lives */
    seq: z.int().positive(),
    /** RFC 3339 in whole seconds, UTC */
    timestamp: z.string(),
    agent_id: z.string(),
    body: z.string(),
  })
  .openapi("WallMessage");
export type WallMessage = z.infer<typeof wallMessage>;

/** The author of what the engine itself has to say. Nobody else may use it. */
export const SYSTEM_AUTHOR = "control-plane";

/** One line of the log. JSON has no line end of its own, whatever the body holds. */
export function encodeMessage({ seq, timestamp, agent_id, body }: WallMessage): Buffer {
  return Buffer.from(`${JSON.stringify({ seq, timestamp, agent_id, body })}\n`);
}

/** Null for a line that is no message. */
export function decodeMessage(line: Uint8Array): WallMessage | null {
  const parsed = wallMessage.safeParse(parseJson(Buffer.from(line).toString("utf8")));
  return parsed.success ? parsed.data : null;
}

/** `ms` since 1970 as the wall writes it. */
export function wallTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
