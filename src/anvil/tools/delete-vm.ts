import { AdapterError, DaemonError, sentenceOf } from "../adapter-error.ts";
import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const deleteVm = defineAnvilTool({
  name: "anvil_delete_vm",
  description:
    "Deletes a VM with everything in it, and the session names that stand for it, also when the VM is gone already.",
  fields: VM_IDENTITY,
  required: [],
  output: RAW_OUTPUT,
  annotations: { destructiveHint: true },
  operation: "DELETE /vms/{vm_id}",
  async perform(given, call) {
    const subject = await resolveVm(given, call);
    const { vmId } = subject;
    return await call.audit.around(subject, async () => {
      const reply = await call.daemon.deleteVm(vmId, call.signal).catch(async (error: unknown) => {
        // Deleted by somebody else: names for it would be taken for good
        if (error instanceof DaemonError && error.status === 404) await removeNames(error.message);
        throw error;
      });
      await removeNames(
        `delete VM ${JSON.stringify(vmId)} succeeded with status ${reply.status_code} body ${reply.body}`,
      );
      return reply;
    });

    async function removeNames(done: string): Promise<void> {
      try {
        await call.sessions.removeVm(vmId);
      } catch (error) {
        const text = `${done}, but its session names could not be removed: ${sentenceOf(error)}. They are kept.`;
        throw new AdapterError("unfinished", text, error);
      }
    }
  },
});
