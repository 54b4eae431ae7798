import { defineAnvilTool } from "../anvil-tool.ts";
import { SNAPSHOT_ID, TENANT_ID } from "../fields.ts";
import { snapshotId } from "../input-rules.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const deleteSnapshot = defineAnvilTool({
  name: "anvil_delete_snapshot",
  description: "Deletes a snapshot. Refused while a diff snapshot or a VM stands on it.",
  fields: { snapshot_id: SNAPSHOT_ID, tenant_id: TENANT_ID },
  required: ["snapshot_id"],
  output: RAW_OUTPUT,
  annotations: { destructiveHint: true },
  operation: "DELETE /snapshots/{snapshot_id}",
  async perform(given, { audit, daemon, signal }) {
    const id = snapshotId(given.snapshot_id);
    return await audit.around({}, () => daemon.deleteSnapshot(id, signal));
  },
});
