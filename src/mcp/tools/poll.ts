import * as z from "zod";
import { flag, runId, sessionId, signal, stdin, text, waitS } from "../argument-schemas.ts";
import { runFields } from "../run-fields.ts";
import { defineTool } from "../tool.ts";
import { jsonResult } from "../tool-result.ts";

const DEFAULT_WAIT_S = 10;

export const poll = defineTool({
  describe: ({ net, egress }) => ({
    name: "poll",
    description:
      "Waits for a run's output after cursor, or its end, with exit_code. Writes stdin or sends a signal first. " +
      "more: true: poll again at once. Run ids last until reset or close.",
    inputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string", description: "From open_session" },
        run_id: { type: "string", description: "From run" },
        cursor: { type: "string", description: "From the last answer; default the start" },
        wait_s: { type: "number", description: "0 to 50; default 10" },
        stdin: { type: "string", description: "Text to write" },
        stdin_eof: { type: "boolean", description: "Close stdin" },
        signal: { type: "string", description: "INT, TERM, KILL …, to all its processes" },
      },
      required: ["session_id", "run_id"],
    },
    annotations: { openWorldHint: net || egress.kind !== "deny_all" },
  }),
  arguments: z.strictObject({
    session_id: sessionId,
    run_id: runId,
    cursor: text("cursor", "Pass the cursor of the answer before, or leave it out for the start.").optional(),
    wait_s: waitS.optional(),
    stdin: stdin.optional(),
    stdin_eof: flag("stdin_eof").optional(),
    signal: signal.optional(),
  }),
  async perform(sessions, given, call) {
    const request = {
      cursor: given.cursor ?? null,
      waitMs: (given.wait_s ?? DEFAULT_WAIT_S) * 1000,
      stdin: given.stdin?.byteLength ? given.stdin : null,
      endsInput: given.stdin_eof ?? false,
      signal: given.signal ?? null,
    };
    return jsonResult(runFields(await sessions.poll(given.session_id, given.run_id, request, call)));
  },
});
