import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const stopVm = defineAnvilTool({
  name: "anvil_stop_vm",
  description:
    "Asks the agent in a VM to stop. The VM keeps its session_name and its place until anvil_delete_vm.",
  fields: VM_IDENTITY,
  required: [],
  output: RAW_OUTPUT,
  annotations: { idempotentHint: true },
  operation: "POST /vms/{vm_id}/stop",
  async perform(given, call) {
    const subject = await resolveVm(given, call);
    return await call.audit.around(subject, () => call.daemon.stop(subject.vmId, call.signal));
  },
});
