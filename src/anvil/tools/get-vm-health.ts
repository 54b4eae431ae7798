import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const getVmHealth = defineAnvilTool({
  name: "anvil_get_vm_health",
  description: "Asks the agent in a VM whether it is idle or busy.",
  fields: VM_IDENTITY,
  required: [],
  output: RAW_OUTPUT,
  annotations: { readOnlyHint: true },
  operation: "GET /vms/{vm_id}/health",
  async perform(given, call) {
    const subject = await resolveVm(given, call);
    return await call.audit.around(subject, () => call.daemon.health(subject.vmId, call.signal));
  },
});
