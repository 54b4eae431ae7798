import type { Command } from "commander";
import type { CtlOptions } from "./ctl-call.ts";
import { type CtlParts, ctlCommand, pathOf, perform } from "./ctl-command.ts";
import { recordView, tableView } from "./ctl-view.ts";

const SNAPSHOTS = tableView(
  "No snapshots.",
  ["SNAPSHOT", "snapshot_id"],
  ["TYPE", "snapshot_type"],
  ["BASE", "base_snapshot_id"],
  ["VM", "source_vm_id"],
  ["PROFILE", "profile"],
  ["TENANT", "tenant_id"],
  ["CREATED", "created_at"],
);

/** `ctl snapshot …` */
export function addSnapshotCommands(ctl: Command, parts: CtlParts): void {
  const snapshot = ctl.command("snapshot").description("list, restore and delete snapshots");
  ctlCommand(snapshot, "ls", "list snapshots").action((options: CtlOptions) =>
    perform({ method: "GET", path: "/snapshots" }, SNAPSHOTS, options, parts),
  );
  ctlCommand(snapshot, "restore", "start a VM that goes on from a snapshot", "<id>")
    .option("--tenant <id>", "tenant it is for")
    .option("--egress <policy>", "deny_all, profile or allow_all")
    .action((id: string, options: CtlOptions & { tenant?: string; egress?: string }) => {
      const body = { tenant_id: options.tenant, egress_policy: options.egress };
      const request = { method: "POST", path: pathOf("snapshots", id, "restore"), body } as const;
      return perform(request, recordView("agent_token"), options, parts);
    });
  ctlCommand(snapshot, "rm", "delete a snapshot", "<id>").action((id: string, options: CtlOptions) =>
    perform({ method: "DELETE", path: pathOf("snapshots", id) }, recordView(), options, parts),
  );
}
