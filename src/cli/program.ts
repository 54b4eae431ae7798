import { Command, InvalidArgumentError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { baseNameFor } from "../config/base-name-for.ts";
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load-config.ts";
import { VARIABLES } from "../config/variables.ts";
import { addAnvilCommands } from "./anvil-commands.ts";
import { type BaseActions, BaseCommands } from "./base-commands.ts";
import type { ConsoleOutput } from "./console-output.ts";
import { addCtlCommands } from "./ctl-commands.ts";
import type { ExitCode } from "./exit-codes.ts";
import { addHttpOptions, httpSettings, type ServeOptions } from "./http-options.ts";
import { formatTable } from "./table.ts";

export interface ProgramParts {
  output: ConsoleOutput;
  loadActions: () => Promise<BaseActions>;
  /** Aborted by Ctrl-C */
  signal: AbortSignal;
  /** Called once with what the command that ran ended with */
  onExit: (code: ExitCode) => void;
}

/** The command line. Throws `CommanderError` for one that makes no sense, and after --help and --version. */
export function createProgram(parts: ProgramParts): Command {
  const program = new Command("ignition-mcp")
    .description("Gives any MCP agent its own computer. Without a command it serves MCP on stdin and stdout.")
    .version(packageJson.version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => parts.output.stdout.write(text),
      writeErr: (text) => parts.output.stderr.write(text),
    })
    .showHelpAfterError("(see ignition-mcp --help)")
    .addHelpText("after", () => `\n${environmentHelp()}`);
  addHttpOptions(program.command("serve"))
    .description("serve MCP on stdin and stdout (the default), or over HTTP")
    .action(async (options: ServeOptions) => {
      const { serve } = await import("./serve.ts");
      const config = loadConfig(process.env);
      parts.onExit(await serve(config, await httpSettings(process.env, options)));
    });
  program
    .command("doctor")
    .option("--json", "print JSON", false)
    .description("check what sessions need of this machine, without starting any")
    .action(async ({ json }: { json: boolean }) => {
      const config = loadConfig(process.env);
      const [{ runDoctor }, { machineChecks }] = await Promise.all([
        import("./doctor.ts"),
        import("./machine-checks.ts"),
      ]);
      parts.onExit(await runDoctor(machineChecks(config), json, parts.output));
    });
  program
    .command("daemon")
    .option("--end-vms", "end all VMs when it ends, instead of leaving them to the next one", false)
    .description("run the engine: VMs over HTTP on ANVIL_API_ADDR, until SIGTERM")
    .action(async ({ endVms }: { endVms: boolean }) => {
      const { runDaemon } = await import("./daemon.ts");
      parts.onExit(await runDaemon(loadConfig(process.env), process.env, endVms));
    });
  addBaseCommands(program, parts);
  addAnvilCommands(program, parts);
  addCtlCommands(program, parts);
  return program;
}

function addBaseCommands(program: Command, { output, loadActions, signal, onExit }: ProgramParts): void {
  const base = program
    .command("base")
    .description("build and look after the warm bases sessions are cloned from");
  const act = async (work: (commands: BaseCommands, config: Config) => Promise<ExitCode>) => {
    const config = loadConfig(process.env);
    onExit(await work(new BaseCommands(config, await loadActions(), output), config));
  };
  base
    .command("build")
    .argument("[name]", "base to build; IGN_MCP_BASE by default", baseName)
    .option("--force", "replace a base of that name", false)
    .description("boot the image once and snapshot it")
    .action((name: string | undefined, { force }: { force: boolean }) =>
      act((commands, config) => commands.build(name ?? baseNameFor(config), force, signal)),
    );
  base
    .command("ls")
    .option("--json", "print JSON", false)
    .description("list the bases in the store")
    .action(({ json }: { json: boolean }) => act((commands) => commands.list(json)));
  base
    .command("rm")
    .argument("<name>", "base to delete", baseName)
    .description("delete a base")
    .action((name: string) => act((commands) => commands.remove(name)));
  base
    .command("verify")
    .argument("[name]", "base to check; IGN_MCP_BASE by default", baseName)
    .description("check that a base is whole and fits this binary, QEMU and image")
    .action((name: string | undefined) =>
      act((commands, config) => commands.verify(name ?? baseNameFor(config))),
    );
}

function baseName(text: string): string {
  const { parse, allowed } = VARIABLES.IGN_MCP_BASE;
  if (!parse.safeParse(text).success) throw new InvalidArgumentError(`A base name must be ${allowed}.`);
  return text;
}

function environmentHelp(): string {
  const rows = Object.entries(VARIABLES).map(([name, { meaning, fallback }]) => [
    `  ${name}`,
    `${meaning} (${fallback})`,
  ]);
  return `Environment (default):\n${formatTable(rows)}\n<image> is the first of image/ beside the executable, ../share/ignition/image, ~/.local/share/ignition/image.`;
}
