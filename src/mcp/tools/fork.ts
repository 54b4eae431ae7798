import * as z from "zod";
import { checkpointId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult, resultSchema } from "../tool-result.ts";

export const fork = defineTool({
  describe: () => ({
    name: "fork",
    description:
      "Opens a session that goes on from a checkpoint, with a clock, randomness and names of its own.",
    inputSchema: {
      type: "object",
      properties: { checkpoint_id: { type: "string", description: "From checkpoint" } },
      required: ["checkpoint_id"],
    },
    outputSchema: resultSchema({ session_id: { type: "string" } }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  }),
  arguments: z.strictObject({ checkpoint_id: checkpointId }),
  async perform(sessions, given, call) {
    const { sessionId } = await sessions.fork(given.checkpoint_id, call);
    return jsonResult({ session_id: sessionId });
  },
});
