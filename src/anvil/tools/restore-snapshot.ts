import { AdapterError, sentenceOf } from "../adapter-error.ts";
import { type AnvilCall, defineAnvilTool } from "../anvil-tool.ts";
import { NEW_SESSION_NAME, SNAPSHOT_ID, TENANT_ID } from "../fields.ts";
import { egressPolicy, snapshotId, trimmed } from "../input-rules.ts";
import { RESTORED_VM_OUTPUT } from "../output-schemas.ts";

export const restoreSnapshot = defineAnvilTool({
  name: "anvil_restore_snapshot",
  description: "Starts a new VM that goes on from a snapshot and returns its vm_id.",
  fields: {
    snapshot_id: SNAPSHOT_ID,
    session_name: NEW_SESSION_NAME,
    tenant_id: TENANT_ID,
    egress_policy: {
      type: "string",
      description:
        "deny_all, profile or allow_all: the snapshot's own, as anvil_list_snapshots tells; default profile",
    },
  },
  required: ["snapshot_id"],
  output: RESTORED_VM_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /snapshots/{snapshot_id}/restore",
  async perform(given, call) {
    const id = snapshotId(given.snapshot_id);
    const request = { tenantId: call.tenantId, egressPolicy: egressPolicy(given.egress_policy) };
    const sessionName = trimmed(given.session_name);
    if (sessionName !== "") await call.sessions.refuseTaken(sessionName);
    return await call.audit.around({ sessionAlias: sessionName }, async (subject) => {
      const vm = await call.daemon.restoreSnapshot(id, request, call.signal);
      subject.vmId = vm.vm_id;
      if (sessionName !== "") await bind(sessionName, vm.vm_id, call);
      return { ...vm, session_name: sessionName || undefined };
    });
  },
});

/** A restored VM may hold work, so unlike a new one it is never deleted for want of its name. */
async function bind(sessionName: string, vmId: string, { sessions }: AnvilCall): Promise<void> {
  try {
    await sessions.bind(sessionName, vmId);
  } catch (error) {
    const failed = `bind session ${JSON.stringify(sessionName)} to restored VM ${JSON.stringify(vmId)}`;
    const text = `${failed}: ${sentenceOf(error)}. The restored VM was not deleted: use it by its vm_id, or delete it with anvil_delete_vm.`;
    throw new AdapterError("unfinished", text, error);
  }
}
