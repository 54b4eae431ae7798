import * as z from "zod";
import { sessionId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult } from "../tool-result.ts";

export const checkpoint = defineTool({
  describe: () => ({
    name: "checkpoint",
    description:
      "Keeps a running session's memory, processes and files, for fork; returns checkpoint_id. The session goes on. Stored until `ignition-mcp base rm`.",
    inputSchema: {
      type: "object",
      properties: { session_id: { type: "string", description: "From open_session" } },
      required: ["session_id"],
    },
    annotations: { openWorldHint: false },
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
