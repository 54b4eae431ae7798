import * as z from "zod";
import { sessionId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { okResult, resultSchema } from "../tool-result.ts";

export const reset = defineTool({
  describe: () => ({
    name: "reset",
    description:
      "Replaces a session's VM with a fresh one under the same session_id. Its files and processes are gone.",
    inputSchema: {
      type: "object",
      properties: { session_id: { type: "string", description: "From open_session" } },
      required: ["session_id"],
    },
    outputSchema: resultSchema({ result: { type: "string", enum: ["ok"] } }),
    annotations: { openWorldHint: false },
  }),
  arguments: z.strictObject({ session_id: sessionId }),
  async perform(sessions, given, call) {
    await sessions.reset(given.session_id, call);
    return okResult();
  },
});
