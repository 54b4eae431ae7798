import { defineAnvilTool } from "../anvil-tool.ts";
import { EGRESS_POLICY, FLOCK_ROLES, FLOCK_TASK, TENANT_ID } from "../fields.ts";
import { egressPolicy, roles, task } from "../input-rules.ts";
import { CREATED_FLOCK_OUTPUT } from "../output-schemas.ts";

export const spawnFlock = defineAnvilTool({
  name: "anvil_spawn_flock",
  description: "Starts a flock: one VM for each role, and a Town Wall on which its agents leave messages.",
  fields: { task: FLOCK_TASK, roles: FLOCK_ROLES, tenant_id: TENANT_ID, egress_policy: EGRESS_POLICY },
  required: ["task", "roles"],
  output: CREATED_FLOCK_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /flocks",
  async perform(given, { audit, daemon, tenantId, signal }) {
    const policy = egressPolicy(given.egress_policy);
    const request = { task: task(given.task), roles: roles(given.roles), tenantId, egressPolicy: policy };
    return await audit.around({}, async (subject) => {
      const flock = await daemon.createFlock(request, signal);
      subject.made = `flock ${JSON.stringify(flock.flock_id)}`;
      return flock;
    });
  },
});
