import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { encoding, fileContent, workspacePath } from "../input-rules.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const copyIn = defineAnvilTool({
  name: "anvil_copy_in",
  description: "Writes one file of at most 4 MiB below /workspace of a VM; directories on its way are made.",
  fields: {
    ...VM_IDENTITY,
    path: { type: "string", description: "Relative to /workspace" },
    content: { type: "string", description: "The file's text, or its bytes in base64" },
    encoding: { type: "string", description: "text or base64; default text" },
    overwrite: { type: "boolean", description: "Replace a file that exists; default false" },
  },
  required: ["path", "content"],
  output: RAW_OUTPUT,
  annotations: {},
  operation: "PUT /vms/{vm_id}/workspace",
  async perform(given, call) {
    const path = workspacePath(given.path);
    const content = fileContent(given.content, encoding(given.encoding));
    const subject = await resolveVm(given, call);
    return await call.audit.around(subject, () =>
      call.daemon.copyIn(subject.vmId, path, content, given.overwrite ?? false, call.signal),
    );
  },
});
