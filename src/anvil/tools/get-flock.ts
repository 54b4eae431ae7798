import { defineAnvilTool } from "../anvil-tool.ts";
import { FLOCK_ID, TENANT_ID } from "../fields.ts";
import { flockId } from "../input-rules.ts";
import { FLOCK_OUTPUT } from "../output-schemas.ts";

export const getFlock = defineAnvilTool({
  name: "anvil_get_flock",
  description: "Shows one flock with the state of its agents.",
  fields: { flock_id: FLOCK_ID, tenant_id: TENANT_ID },
  required: ["flock_id"],
  output: FLOCK_OUTPUT,
  annotations: { readOnlyHint: true },
  operation: "GET /flocks/{flock_id}",
  async perform(given, { audit, daemon, signal }) {
    const id = flockId(given.flock_id);
    return await audit.around({}, () => daemon.getFlock(id, signal));
  },
});
