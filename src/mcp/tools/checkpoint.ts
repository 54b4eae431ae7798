import * as z from "zod";
import { sessionId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult, resultSchema } from "../tool-result.ts";

export const checkpoint = defineTool({
  describe: () => ({
    name: "checkpoint",
    description:
      "Keeps a session as it is, with memory, processes and files, to fork from. It goes on running. Stored until `ignition-mcp base rm`.",
    inputSchema: {
      type: "object",
      properties: { session_id: { type: "string", description: "From open_session" } },
      required: ["session_id"],
    },
    outputSchema: resultSchema({
      checkpoint_id: { type: "string" },
      bytes_written: { type: "integer" },
      paused_ms: { type: "number" },
    }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  }),
  arguments: z.strictObject({ session_id: sessionId }),
  async perform(sessions, given, call) {
    const taken = await sessions.checkpoint(given.session_id, call);
    return jsonResult({
      checkpoint_id: taken.checkpointId,
      bytes_written: taken.bytesWritten,
      paused_ms: taken.pausedMs,
    });
  },
});
