import { defineAnvilTool } from "../anvil-tool.ts";
import { FLOCK_ID, TENANT_ID } from "../fields.ts";
import { flockId } from "../input-rules.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const deleteFlock = defineAnvilTool({
  name: "anvil_delete_flock",
  description: "Deletes a flock and all its VMs.",
  fields: { flock_id: FLOCK_ID, tenant_id: TENANT_ID },
  required: ["flock_id"],
  output: RAW_OUTPUT,
  annotations: { destructiveHint: true },
  operation: "DELETE /flocks/{flock_id}",
  async perform(given, { audit, daemon, signal }) {
    const id = flockId(given.flock_id);
    return await audit.around({}, () => daemon.deleteFlock(id, signal));
  },
});
