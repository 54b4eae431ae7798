import { defineAnvilTool } from "../anvil-tool.ts";
import { FLOCK_ID, TENANT_ID } from "../fields.ts";
import { flockId, nonEmpty } from "../input-rules.ts";
import { WALL_MESSAGE_OUTPUT } from "../output-schemas.ts";

export const postTownwall = defineAnvilTool({
  name: "anvil_post_townwall",
  description: "Leaves a message on a flock's Town Wall in the name of one of its agents.",
  fields: {
    flock_id: FLOCK_ID,
    agent_id: { type: "string", description: "Agent of the flock the message is from" },
    body: { type: "string", description: "The message; not empty" },
    tenant_id: TENANT_ID,
  },
  required: ["flock_id", "agent_id", "body"],
  output: WALL_MESSAGE_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /flocks/{flock_id}/post",
  async perform(given, { audit, daemon, signal }) {
    const id = flockId(given.flock_id);
    const agentId = nonEmpty(given.agent_id, "agent_id must be non-empty");
    nonEmpty(given.body, "body must be non-empty");
    return await audit.around({}, () => daemon.postTownWall(id, agentId, given.body, signal));
  },
});
