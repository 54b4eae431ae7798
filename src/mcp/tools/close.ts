import * as z from "zod";
import { sessionId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { okResult, resultSchema } from "../tool-result.ts";

export const close = defineTool({
  describe: () => ({
    name: "close",
    description:
      "Ends a session and discards its VM. Close sessions you no longer need: their number is limited.",
    inputSchema: {
      type: "object",
      properties: { session_id: { type: "string", description: "From open_session" } },
      required: ["session_id"],
    },
    outputSchema: resultSchema({ result: { type: "string", enum: ["ok"] } }),
    annotations: { idempotentHint: true, openWorldHint: false },
  }),
  arguments: z.strictObject({ session_id: sessionId }),
  async perform(sessions, given) {
    await sessions.close(given.session_id);
    return okResult();
  },
});
