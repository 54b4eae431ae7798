import { type Command, InvalidArgumentError } from "commander";
import type { CtlOptions } from "./ctl-call.ts";
import { type CtlParts, ctlCommand, pathOf, perform } from "./ctl-command.ts";
import { recordView, tableView } from "./ctl-view.ts";

const FORWARDS = tableView("No forwarded ports.", ["HOST PORT", "host_port"], ["GUEST PORT", "guest_port"]);

/** `ctl vm forward`, `forwards` and `unforward` */
export function addForwardCommands(vm: Command, parts: CtlParts): void {
  ctlCommand(vm, "forward", "let a port of the daemon's loopback lead to one of a VM's", "<id>")
    .argument("<guest-port>", "", port)
    .option("--host-port <port>", "port of the loopback; default: any that is free", port)
    .action((id: string, guestPort: number, options: CtlOptions & { hostPort?: number }) => {
      const body = { guest_port: guestPort, host_port: options.hostPort };
      const request = { method: "POST", path: pathOf("vms", id, "forwards"), body } as const;
      return perform(request, recordView(), options, parts);
    });
  ctlCommand(vm, "forwards", "list the forwarded ports of a VM", "<id>").action(
    (id: string, options: CtlOptions) =>
      perform({ method: "GET", path: pathOf("vms", id, "forwards") }, FORWARDS, options, parts),
  );
  ctlCommand(vm, "unforward", "close a forwarded port and its connections", "<id>")
    .argument("<host-port>", "", port)
    .action((id: string, hostPort: number, options: CtlOptions) =>
      perform(
        { method: "DELETE", path: pathOf("vms", id, "forwards", String(hostPort)) },
        recordView(),
        options,
        parts,
      ),
    );
}

function port(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value >= 1 && value <= 65_535) return value;
  throw new InvalidArgumentError("It must be a port from 1 to 65535.");
}
