import * as z from "zod";
import { defineTool } from "../tool.ts";
import { jsonResult, resultSchema } from "../tool-result.ts";

export const openSession = defineTool({
  describe: ({ idleMs, net, egress }) => ({
    name: "open_session",
    description:
      `Starts a private Linux VM and returns its session_id for the other tools. You are root in it, with sh, Python 3, git and gcc. ` +
      `Files persist until reset or close; shell state does not. Closed after ${inWords(idleMs)} without a call. ` +
      (net ? "It has a network." : NETWORK[egress.kind]),
    inputSchema: { type: "object", properties: {} },
    outputSchema: resultSchema({ session_id: { type: "string" } }),
    annotations: { destructiveHint: false, openWorldHint: false },
  }),
  // Some clients cannot call a tool without sending something: what they send is ignored.
  arguments: z.object({}),
  async perform(sessions, _given, call) {
    const { sessionId } = await sessions.open(call);
    return jsonResult({ session_id: sessionId });
  },
});

const NETWORK = {
  deny_all: "It has no network.",
  profile: "Listed hosts are reachable, only by proxy ($https_proxy).",
  allow_all: "The internet is reachable, only by proxy ($https_proxy).",
};

function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}
