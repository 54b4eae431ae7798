import { AdapterError } from "../adapter-error.ts";
import { defineAnvilTool } from "../anvil-tool.ts";
import { EGRESS_POLICY, FLOCK_ROLES, FLOCK_TASK, TENANT_ID } from "../fields.ts";
import { egressPolicy, roles, task } from "../input-rules.ts";
import { ROUTED_FLOCK_OUTPUT } from "../output-schemas.ts";

/** Needs a router over several hosts. */
export const createRoutedFlockMembers = defineAnvilTool({
  name: "anvil_create_routed_flock_members",
  description:
    "Starts a flock whose VMs are spread over several hosts. Experimental; works only where several hosts are configured.",
  fields: { task: FLOCK_TASK, roles: FLOCK_ROLES, tenant_id: TENANT_ID, egress_policy: EGRESS_POLICY },
  required: ["task", "roles"],
  output: ROUTED_FLOCK_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /vms routed flock members",
  async perform(given, { audit }) {
    egressPolicy(given.egress_policy);
    task(given.task);
    roles(given.roles);
    return await audit.around({}, async () => {
      throw new AdapterError("no_router", "routed flock members create is disabled");
    });
  },
});
