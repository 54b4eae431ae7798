import * as z from "zod";
import { checkpointId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult } from "../tool-result.ts";

export const fork = defineTool({
  describe: () => ({
    name: "fork",
    description:
      "Opens a session that goes on from a checkpoint, with its processes; returns session_id. Time, randomness and names are its own.",
    inputSchema: {
      type: "object",
      properties: { checkpoint_id: { type: "string", description: "From checkpoint" } },
      required: ["checkpoint_id"],
    },
    annotations: { openWorldHint: false },
  }),
  arguments: z.strictObject({ checkpoint_id: checkpointId }),
  async perform(sessions, given, call) {
    const { sessionId } = await sessions.fork(given.checkpoint_id, call);
    return jsonResult({ session_id: sessionId });
  },
});
