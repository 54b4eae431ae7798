import * as z from "zod";
import { contentBase64, guestPath, sessionId } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { okResult, resultSchema } from "../tool-result.ts";

export const writeFile = defineTool({
  describe: ({ tools }) => ({
    name: "write_file",
    description:
      "Writes one file in a session, replacing it if it exists and creating missing directories. " +
      (tools === "all"
        ? "Any bytes, at most 32 MiB."
        : "Any bytes, at most 32 MiB. To read a file, run `cat path`."),
    inputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string", description: "From open_session" },
        path: { type: "string", description: "Absolute, or relative to /root" },
        content_base64: {
          type: "string",
          description: "The file's bytes in standard base64; empty for an empty file",
        },
      },
      required: ["session_id", "path", "content_base64"],
    },
    outputSchema: resultSchema({ result: { type: "string", enum: ["ok"] } }),
    annotations: { idempotentHint: true, openWorldHint: false },
  }),
  arguments: z.strictObject({
    session_id: sessionId,
    path: guestPath("path", "Pass the file's path in the VM, absolute or relative to /root."),
    content_base64: contentBase64,
  }),
  async perform(sessions, given, call) {
    await sessions.writeFile(given.session_id, given.path, given.content_base64, call);
    return okResult();
  },
});
