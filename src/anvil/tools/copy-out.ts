import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { VM_IDENTITY } from "../fields.ts";
import { encoding, workspacePath } from "../input-rules.ts";
import { resultOf } from "../output-schemas.ts";

export const copyOut = defineAnvilTool({
  name: "anvil_copy_out",
  description: "Reads one file of at most 4 MiB below /workspace of a VM.",
  fields: {
    ...VM_IDENTITY,
    path: { type: "string", description: "Relative to /workspace" },
    encoding: { type: "string", description: "text, or base64 for any bytes; default text" },
  },
  required: ["path"],
  output: resultOf({
    path: { type: "string" },
    content: { type: "string" },
    encoding: { type: "string" },
  }),
  annotations: { readOnlyHint: true },
  operation: "GET /vms/{vm_id}/workspace",
  async perform(given, call) {
    const path = workspacePath(given.path);
    const as = encoding(given.encoding);
    const subject = await resolveVm(given, call);
    return await call.audit.around(subject, async () => {
      const bytes = Buffer.from(await call.daemon.copyOut(subject.vmId, path, call.signal));
      return { path, content: bytes.toString(as === "text" ? "utf8" : "base64"), encoding: as };
    });
  },
});
