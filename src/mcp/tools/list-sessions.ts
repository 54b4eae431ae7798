import * as z from "zod";
import type { SessionSummary } from "../../session/session-service.ts";
import { defineTool } from "../tool.ts";
import { jsonResult } from "../tool-result.ts";

export const listSessions = defineTool({
  describe: () => ({
    name: "list_sessions",
    description: "Lists open sessions: to find a lost id, or one to close. closes_in_s: when unused.",
    inputSchema: { type: "object", properties: {} },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }),
  // As for open_session, what clients send along is ignored.
  arguments: z.object({}),
  perform: (sessions) => jsonResult({ sessions: sessions.list().map(toWire) }),
});

function toWire(session: SessionSummary): Record<string, unknown> {
  return {
    session_id: session.sessionId,
    state: session.state,
    age_s: inSeconds(session.ageMs),
    idle_s: inSeconds(session.idleMs),
    runs: session.runs,
    ...(session.closesInMs !== null && { closes_in_s: inSeconds(session.closesInMs) }),
  };
}

function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
