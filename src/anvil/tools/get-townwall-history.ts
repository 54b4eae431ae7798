import { defineAnvilTool } from "../anvil-tool.ts";
import { FLOCK_ID, TENANT_ID } from "../fields.ts";
import { flockId } from "../input-rules.ts";
import { listOf, WALL_MESSAGE_OUTPUT } from "../output-schemas.ts";

export const getTownwallHistory = defineAnvilTool({
  name: "anvil_get_townwall_history",
  description: "Reads the messages on a flock's Town Wall, oldest first.",
  fields: { flock_id: FLOCK_ID, tenant_id: TENANT_ID },
  required: ["flock_id"],
  output: listOf("messages", WALL_MESSAGE_OUTPUT),
  annotations: { readOnlyHint: true },
  operation: "GET /flocks/{flock_id}/wall/history",
  async perform(given, { audit, daemon, signal }) {
    const id = flockId(given.flock_id);
    return await audit.around({}, async () => ({ messages: await daemon.townWallHistory(id, signal) }));
  },
});
