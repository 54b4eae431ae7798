import { AdapterError, sentenceOf } from "../adapter-error.ts";
import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { snapshotType } from "../input-rules.ts";
import { SNAPSHOT_OUTPUT } from "../output-schemas.ts";

export const createSnapshot = defineAnvilTool({
  name: "anvil_create_snapshot",
  description: "Keeps a VM's memory and files as a snapshot that anvil_restore_snapshot makes VMs of.",
  fields: {
    ...VM_IDENTITY,
    stop_after: { type: "boolean", description: "End the VM, and its session names, once it is kept" },
    type: {
      type: "string",
      description: "full, or diff for what changed since the last one; default: diff where it can be",
    },
  },
  required: ["stop_after"],
  output: SNAPSHOT_OUTPUT,
  annotations: {},
  operation: "POST /vms/{vm_id}/snapshot",
  async perform(given, call) {
    const type = snapshotType(given.type);
    const vm = await resolveVm(given, call);
    const request = { stopAfter: given.stop_after, type, tenantId: call.tenantId };
    return await call.audit.around(vm, async (subject) => {
      const snapshot = await call.daemon.createSnapshot(vm.vmId, request, call.signal);
      subject.made = `snapshot ${JSON.stringify(snapshot.snapshot_id)}`;
      if (given.stop_after) await removeNames(snapshot.snapshot_id);
      return snapshot;
    });

    async function removeNames(snapshotId: string): Promise<void> {
      try {
        await call.sessions.removeVm(vm.vmId);
      } catch (error) {
        const done = `snapshot ${JSON.stringify(snapshotId)} of VM ${JSON.stringify(vm.vmId)} succeeded`;
        const text = `${done}, but the VM's session names could not be removed: ${sentenceOf(error)}. They are kept.`;
        throw new AdapterError("unfinished", text, error);
      }
    }
  },
});
