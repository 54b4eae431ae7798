import { defineAnvilTool } from "../anvil-tool.ts";
import { listOf, SNAPSHOT_OUTPUT } from "../output-schemas.ts";

export const listSnapshots = defineAnvilTool({
  name: "anvil_list_snapshots",
  description: "Lists all snapshots that are kept.",
  fields: {},
  required: [],
  output: listOf("snapshots", SNAPSHOT_OUTPUT),
  annotations: { readOnlyHint: true },
  operation: "GET /snapshots",
  perform: (_given, { audit, daemon, signal }) =>
    audit.around({}, async () => ({ snapshots: await daemon.listSnapshots(signal) })),
});
