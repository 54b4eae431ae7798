import type { Command } from "commander";
import type { CtlOptions } from "./ctl-call.ts";
import { type CtlParts, ctlCommand, pathOf, perform, queryOf } from "./ctl-command.ts";
import { addForwardCommands } from "./ctl-forward-commands.ts";
import { memberView, recordView, tableView } from "./ctl-view.ts";

const VMS = [
  ["VM", "vm_id"],
  ["PROFILE", "profile"],
  ["TENANT", "tenant_id"],
  ["EGRESS", "egress_policy"],
  ["STATUS", "status"],
  ["CREATED", "created_at"],
] as const;
const STATS = [
  ["CPU %", "stats.cpu_percent"],
  ["MEM MIB", "stats.mem_used_mib"],
  ["UP S", "stats.uptime_seconds"],
  ["BUSY", "stats.agent_busy"],
] as const;

/** `ctl vm …` */
export function addVmCommands(ctl: Command, parts: CtlParts): void {
  const vm = ctl.command("vm").description("start, use and delete VMs");
  ctlCommand(vm, "spawn", "start a VM")
    .option("--profile <name>", "profile that says what runs in it")
    .option("--tenant <id>", "tenant it is for")
    .option("--egress <policy>", "deny_all, profile or allow_all")
    .action((options: CtlOptions & { profile?: string; tenant?: string; egress?: string }) => {
      const body = { profile: options.profile, tenant_id: options.tenant, egress_policy: options.egress };
      return perform({ method: "POST", path: "/vms", body }, recordView("agent_token"), options, parts);
    });
  ctlCommand(vm, "ls", "list VMs")
    .option("--stats", "with what each uses", false)
    .action((options: CtlOptions & { stats: boolean }) => {
      const path = `/vms${queryOf({ stats: options.stats })}`;
      const columns = options.stats ? [...VMS, ...STATS] : VMS;
      return perform({ method: "GET", path }, tableView("No VMs.", ...columns), options, parts);
    });
  addPlain("rm", "delete a VM with everything in it", "DELETE");
  addPlain("health", "ask the VM's agent whether it is idle or busy", "GET", "health");
  addPlain("stop", "ask the VM's agent to stop", "POST", "stop");
  addPlain("stats", "what a VM uses", "GET", "stats");
  ctlCommand(vm, "task", "run a prompt in a VM and print its output", "<id>")
    .argument("<prompt...>", "its words, after a -- when one begins with -; a single - for stdin")
    .action(async (id: string, words: string[], options: CtlOptions) => {
      const prompt = words.length === 1 && words[0] === "-" ? await Bun.stdin.text() : words.join(" ");
      const request = { method: "POST", path: pathOf("vms", id, "tasks"), body: { prompt } } as const;
      await perform(request, memberView("output"), options, parts);
    });
  ctlCommand(vm, "snapshot", "keep a VM's memory and files", "<id>")
    .option("--stop-after", "end the VM once it is kept", false)
    .option("--type <type>", "full or diff")
    .action((id: string, options: CtlOptions & { stopAfter: boolean; type?: string }) => {
      const body = { stop_after: options.stopAfter, type: options.type };
      return perform(
        { method: "POST", path: pathOf("vms", id, "snapshot"), body },
        recordView(),
        options,
        parts,
      );
    });
  addForwardCommands(vm, parts);

  function addPlain(
    name: string,
    description: string,
    method: "GET" | "POST" | "DELETE",
    ...rest: string[]
  ): void {
    ctlCommand(vm, name, description, "<id>").action((id: string, options: CtlOptions) =>
      perform({ method, path: pathOf("vms", id, ...rest) }, recordView(), options, parts),
    );
  }
}
