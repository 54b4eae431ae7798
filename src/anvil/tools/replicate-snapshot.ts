import { AdapterError } from "../adapter-error.ts";
import { defineAnvilTool } from "../anvil-tool.ts";
import { SNAPSHOT_ID } from "../fields.ts";
import { required, snapshotId } from "../input-rules.ts";
import { REPLICATION_OUTPUT } from "../output-schemas.ts";

/** Needs a router over several hosts; with one daemon there is no other host to copy to. */
export const replicateSnapshot = defineAnvilTool({
  name: "anvil_replicate_snapshot",
  description: "Copies a snapshot from one host to another. Works only where several hosts are configured.",
  fields: {
    snapshot_id: SNAPSHOT_ID,
    source_host: { type: "string", description: "Host that has it" },
    target_host: { type: "string", description: "Host to copy it to" },
    include_dependencies: {
      type: "boolean",
      description: "Also copy the full snapshot that a diff stands on; default false",
    },
  },
  required: ["snapshot_id", "source_host", "target_host"],
  output: REPLICATION_OUTPUT,
  annotations: { destructiveHint: false },
  operation: "POST /snapshots/{snapshot_id}/export -> POST /snapshots/import",
  async perform(given, { audit }) {
    snapshotId(given.snapshot_id);
    required("source_host", given.source_host);
    required("target_host", given.target_host);
    return await audit.around({}, async () => {
      throw new AdapterError("no_router", "configured daemon does not support snapshot replication");
    });
  },
});
