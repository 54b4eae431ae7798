import type { Command } from "commander";
import type { CtlOptions } from "./ctl-call.ts";
import { type CtlParts, ctlCommand, follow, pathOf, perform } from "./ctl-command.ts";
import { broadcastView, flockView, recordView, tableView, wallLine, wallView } from "./ctl-view.ts";

const FLOCKS = tableView(
  "No flocks.",
  ["FLOCK", "flock_id"],
  ["TASK", "task"],
  ["TENANT", "tenant_id"],
  ["PAUSED", "paused"],
  ["CREATED", "created_at"],
);

/** `ctl flock …` */
export function addFlockCommands(ctl: Command, parts: CtlParts): void {
  const flock = ctl.command("flock").description("start, watch and change flocks");
  ctlCommand(flock, "create", "start a VM for each role")
    .requiredOption("--task <text>", "what the flock is to do")
    .requiredOption("--roles <a,b>", "roles, with commas between", (text: string) => text.split(","))
    .option("--tenant <id>", "tenant it is for")
    .option("--egress <policy>", "deny_all, profile or allow_all")
    .action((options: CtlOptions & { task: string; roles: string[]; tenant?: string; egress?: string }) => {
      const { task, roles, tenant, egress } = options;
      const body = { task, roles, tenant_id: tenant, egress_policy: egress };
      return perform({ method: "POST", path: "/flocks", body }, flockView, options, parts);
    });
  ctlCommand(flock, "ls", "list flocks").action((options: CtlOptions) =>
    perform({ method: "GET", path: "/flocks" }, FLOCKS, options, parts),
  );
  ctlCommand(flock, "get", "show a flock and its agents", "<id>").action((id: string, options: CtlOptions) =>
    perform({ method: "GET", path: pathOf("flocks", id) }, flockView, options, parts),
  );
  ctlCommand(flock, "rm", "delete a flock and its VMs", "<id>").action((id: string, options: CtlOptions) =>
    perform({ method: "DELETE", path: pathOf("flocks", id) }, recordView(), options, parts),
  );
  for (const verb of ["pause", "resume"]) {
    ctlCommand(flock, verb, `${verb} all VMs of a flock`, "<id>").action((id: string, options: CtlOptions) =>
      perform({ method: "POST", path: pathOf("flocks", id, verb) }, recordView(), options, parts),
    );
  }
  ctlCommand(flock, "broadcast", "run a prompt in all idle agents of a flock", "<id>")
    .requiredOption("--body <text>", "the prompt")
    .action((id: string, options: CtlOptions & { body: string }) => {
      const request = {
        method: "POST",
        path: pathOf("flocks", id, "broadcast"),
        body: { body: options.body },
      } as const;
      return perform(request, broadcastView, options, parts);
    });
  addWallCommands(flock, parts);
  addAgentCommands(flock, parts);
}

function addWallCommands(flock: Command, parts: CtlParts): void {
  ctlCommand(flock, "post", "leave a message on the Town Wall", "<id>")
    .requiredOption("--agent <id>", "agent it is from")
    .requiredOption("--body <text>", "the message")
    .action((id: string, options: CtlOptions & { agent: string; body: string }) => {
      const body = { agent_id: options.agent, body: options.body };
      return perform({ method: "POST", path: pathOf("flocks", id, "post"), body }, wallLine, options, parts);
    });
  ctlCommand(flock, "wall", "print the Town Wall and follow it", "<id>")
    .option("--history", "print what is there and end", false)
    .action((id: string, options: CtlOptions & { history: boolean }) =>
      options.history
        ? perform({ method: "GET", path: pathOf("flocks", id, "wall", "history") }, wallView, options, parts)
        : follow({ method: "GET", path: pathOf("flocks", id, "wall") }, options, parts),
    );
}

function addAgentCommands(flock: Command, parts: CtlParts): void {
  const agentPath = (id: string, agent: string, ...rest: string[]) =>
    pathOf("flocks", id, "agents", agent, ...rest);
  ctlCommand(flock, "add-agent", "start one more agent", "<id>")
    .requiredOption("--role <role>", "its role")
    .option("--profile <name>", "profile of its VM; default: its role's")
    .action((id: string, options: CtlOptions & { role: string; profile?: string }) => {
      const body = { role: options.role, profile: options.profile };
      return perform(
        { method: "POST", path: pathOf("flocks", id, "agents"), body },
        recordView(),
        options,
        parts,
      );
    });
  ctlCommand(flock, "rm-agent", "delete an agent and its VM", "<id>", "<agent>").action(
    (id: string, agent: string, options: CtlOptions) =>
      perform({ method: "DELETE", path: agentPath(id, agent) }, recordView(), options, parts),
  );
  ctlCommand(flock, "set-role", "give an agent another role", "<id>", "<agent>")
    .requiredOption("--role <role>", "its new role")
    .option("--profile <name>", "profile of its VM; default: its role's")
    .action((id: string, agent: string, options: CtlOptions & { role: string; profile?: string }) => {
      const body = { role: options.role, profile: options.profile };
      return perform(
        { method: "PATCH", path: agentPath(id, agent), body },
        recordView("agent_token"),
        options,
        parts,
      );
    });
  ctlCommand(flock, "restart", "give an agent a new VM", "<id>", "<agent>").action(
    (id: string, agent: string, options: CtlOptions) =>
      perform(
        { method: "POST", path: agentPath(id, agent, "restart") },
        recordView("agent_token"),
        options,
        parts,
      ),
  );
}
