import { defineAnvilTool, resolveVm } from "../anvil-tool.ts";
import { Deadline } from "../deadline.ts";
import { VM_IDENTITY } from "../fields.ts";
import { prompt, taskTimeoutMs } from "../input-rules.ts";
import { RAW_OUTPUT } from "../output-schemas.ts";

export const runTask = defineAnvilTool({
  name: "anvil_run_task",
  description:
    "Runs a prompt in a VM and waits for its end. What runs it is up to the VM's profile; body holds the output. One task at a time runs in a VM.",
  fields: {
    ...VM_IDENTITY,
    prompt: { type: "string", description: "What to run; not empty" },
    timeout_seconds: {
      type: "integer",
      description: "Seconds until it is given up, at most 86400; default: the configured ones",
    },
  },
  required: ["prompt"],
  output: RAW_OUTPUT,
  annotations: { openWorldHint: true },
  operation: "POST /vms/{vm_id}/tasks",
  async perform(given, call) {
    const text = prompt(given.prompt);
    const ownMs = taskTimeoutMs(given.timeout_seconds);
    const limitMs = ownMs ?? call.defaultTimeoutMs;
    const origin = ownMs === null ? "default_timeout_seconds" : "timeout_seconds";
    const subject = await resolveVm(given, call);
    return await call.audit.around(subject, async () => {
      using deadline = new Deadline(
        limitMs,
        `no answer within ${limitMs / 1000} s (${origin}). The request was given up, which ends its task.`,
      );
      const signal = AbortSignal.any([call.signal, deadline.signal]);
      return await call.daemon.runTask(subject.vmId, text, signal);
    });
  },
});
