import { type Command, InvalidArgumentError } from "commander";
import type { CtlOptions } from "./ctl-call.ts";
import { type CtlParts, ctlCommand, perform, queryOf } from "./ctl-command.ts";
import { addFlockCommands } from "./ctl-flock-commands.ts";
import { addSnapshotCommands } from "./ctl-snapshot-commands.ts";
import { metricsView, tableView } from "./ctl-view.ts";
import { addVmCommands } from "./ctl-vm-commands.ts";

const MAX_AUDIT_RECORDS = 1000;
const REQUESTS = tableView(
  "No requests.",
  ["TIME", "ts"],
  ["CLIENT", "client"],
  ["METHOD", "method"],
  ["PATH", "path"],
  ["STATUS", "status"],
  ["MS", "duration_ms"],
  ["FROM", "remote_addr"],
);
const HELP = `
Environment (default):
  EPHEMERA_CTL_URL    http://…, https://… or unix:/path of the daemon (http://127.0.0.1:3000)
  EPHEMERA_CTL_TOKEN  token for it (that of EPHEMERA_API_TOKEN)

It ends with 0, with 1 when the daemon does not do what it is asked, and with 2 for a command line that makes no sense.`;

/** `ctl`: the daemon from a shell. */
export function addCtlCommands(program: Command, parts: CtlParts): void {
  const ctl = program.command("ctl").description("use a daemon from a shell").addHelpText("after", HELP);
  addVmCommands(ctl, parts);
  addFlockCommands(ctl, parts);
  addSnapshotCommands(ctl, parts);
  ctlCommand(ctl, "audit", "list the requests the daemon has answered, newest first")
    .option(
      "--limit <n>",
      `at most so many, up to ${MAX_AUDIT_RECORDS}; default: the daemon's 100`,
      recordLimit,
    )
    .option("--client <name>", "only of this client")
    .option("--status <code>", "only with this status")
    .option("--method <method>", "only with this method")
    .action((options: CtlOptions & { limit?: number; client?: string; status?: string; method?: string }) => {
      const { limit, client, status, method } = options;
      const path = `/audit${queryOf({ limit, client, status, method })}`;
      return perform({ method: "GET", path }, REQUESTS, options, parts);
    });
  ctlCommand(ctl, "metrics", "print the daemon's metrics, or with --json those of each VM").action(
    (options: CtlOptions) =>
      options.json
        ? perform({ method: "GET", path: "/metrics/vms" }, tableView("No VMs."), options, parts)
        : perform({ method: "GET", path: "/metrics" }, metricsView, options, parts),
  );
}

function recordLimit(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= MAX_AUDIT_RECORDS) return limit;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_AUDIT_RECORDS}.`);
}
