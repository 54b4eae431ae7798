import { type Command, InvalidArgumentError } from "commander";
import type { CtlContext, CtlOptions, CtlRequest } from "./ctl-call.ts";
import type { View } from "./ctl-view.ts";
import type { ExitCode } from "./exit-codes.ts";

/** Where a ctl command runs, and where it ends. */
export interface CtlParts extends Omit<CtlContext, "env"> {
  onExit: (code: ExitCode) => void;
}

/** A command with the options all of them have; "<id>"-like arguments in `usage` must be fit for a path. */
export function ctlCommand(parent: Command, name: string, description: string, ...args: string[]): Command {
  const command = parent.command(name).description(description);
  for (const argument of args) command.argument(argument, "", pathPart);
  return command
    .option("--json", "print the daemon's answer as it came", false)
    .option("--token <token>", "token for the daemon; wins over EPHEMERA_CTL_TOKEN and EPHEMERA_API_TOKEN");
}

/** Makes the request and shows its answer. */
export async function perform(
  request: CtlRequest,
  view: View,
  options: CtlOptions,
  { onExit, ...context }: CtlParts,
): Promise<void> {
  const { ctlCall } = await import("./ctl-call.ts");
  onExit(await ctlCall(request, view, options, { ...context, env: process.env }));
}

/** As `perform`, for a stream of messages. */
export async function follow(
  request: CtlRequest,
  options: CtlOptions,
  { onExit, ...context }: CtlParts,
): Promise<void> {
  const { ctlFollow } = await import("./ctl-call.ts");
  onExit(await ctlFollow(request, options, { ...context, env: process.env }));
}

/** `/vms/a/b` of "vms", "a", "b", each part escaped. */
export function pathOf(...parts: readonly string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

/** `?a=b` of what is given; empty for nothing. */
export function queryOf(given: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const parts = Object.entries(given).flatMap(([name, value]) =>
    value === undefined || value === false ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** A URL would lose these segments, and the request would go elsewhere. */
function pathPart(text: string): string {
  if (text === "" || text === "." || text === "..") throw new InvalidArgumentError("It is no id.");
  return text;
}
