import { AdapterError, sentenceOf } from "../adapter-error.ts";
import { type AnvilCall, defineAnvilTool } from "../anvil-tool.ts";
import { Deadline } from "../deadline.ts";
import { EGRESS_POLICY, NEW_SESSION_NAME, TENANT_ID } from "../fields.ts";
import { egressPolicy, trimmed } from "../input-rules.ts";
import { VM_OUTPUT } from "../output-schemas.ts";

const CLEANUP_MS = 10_000;

export const spawnVm = defineAnvilTool({
  name: "anvil_spawn_vm",
  description: "Starts a VM and returns its vm_id. With session_name it can be called by that name, too.",
  fields: {
    profile: { type: "string", description: "Profile that says what runs in the VM; default: the daemon's" },
    session_name: NEW_SESSION_NAME,
    tenant_id: TENANT_ID,
    egress_policy: EGRESS_POLICY,
  },
  required: [],
  output: VM_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /vms",
  async perform(given, call) {
    const request = {
      profile: trimmed(given.profile),
      tenantId: call.tenantId,
      egressPolicy: egressPolicy(given.egress_policy),
    };
    const sessionName = trimmed(given.session_name);
    if (sessionName !== "") await call.sessions.refuseTaken(sessionName);
    return await call.audit.around({ sessionAlias: sessionName }, async (subject) => {
      const vm = await call.daemon.createVm(request, call.signal);
      subject.vmId = vm.vm_id;
      if (sessionName !== "") await bindOrDelete(sessionName, vm.vm_id, call);
      return { ...vm, session_name: sessionName || undefined };
    });
  },
});

async function bindOrDelete(
  sessionName: string,
  vmId: string,
  { sessions, daemon }: AnvilCall,
): Promise<void> {
  try {
    await sessions.bind(sessionName, vmId);
  } catch (error) {
    using deadline = new Deadline(CLEANUP_MS, `no answer within ${CLEANUP_MS / 1000} s`);
    const end = await daemon.deleteVm(vmId, deadline.signal).then(
      () => `VM ${JSON.stringify(vmId)} was deleted again`,
      (failure: unknown) =>
        `VM ${JSON.stringify(vmId)} could not be deleted (${sentenceOf(failure)}); delete it with anvil_delete_vm`,
    );
    throw new AdapterError("unfinished", `${sentenceOf(error)}; ${end}`, error);
  }
}
