import { defineAnvilTool } from "../anvil-tool.ts";
import { TENANT_ID } from "../fields.ts";
import { FLOCK_OUTPUT, listOf } from "../output-schemas.ts";

export const listFlocks = defineAnvilTool({
  name: "anvil_list_flocks",
  description: "Lists all live flocks with their agents.",
  fields: { tenant_id: TENANT_ID },
  required: [],
  output: listOf("flocks", FLOCK_OUTPUT),
  annotations: { readOnlyHint: true },
  operation: "GET /flocks",
  perform: (_given, { audit, daemon, signal }) =>
    audit.around({}, async () => ({ flocks: await daemon.listFlocks(signal) })),
});
