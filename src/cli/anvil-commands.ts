import { type Command, InvalidArgumentError } from "commander";
import { SETTINGS } from "../anvil/settings.ts";
import type { ConsoleOutput } from "./console-output.ts";
import type { ExitCode } from "./exit-codes.ts";
import { addHttpOptions, httpSettings, type ServeOptions } from "./http-options.ts";
import { formatTable } from "./table.ts";

interface Parts {
  output: ConsoleOutput;
  onExit: (code: ExitCode) => void;
}

/** `anvil`, the adapter, and `anvil audit …`, which looks after what it writes down. */
export function addAnvilCommands(program: Command, { output, onExit }: Parts): void {
  const anvil = addHttpOptions(program.command("anvil"))
    .description("serve the anvil_* tools over MCP on stdin and stdout or HTTP, in front of a daemon")
    .addHelpText("after", () => `\n${settingsHelp()}`)
    .action(async (options: ServeOptions) => {
      const { serveAnvil } = await import("./anvil.ts");
      onExit(await serveAnvil(process.env, await httpSettings(process.env, options)));
    });
  const audit = anvil.command("audit").description("read or prune the adapter's runtime audit");
  audit
    .command("ls")
    .option("--tenant <id>", "only this tenant's records")
    .option("--limit <n>", "only the newest n", wholeNumber)
    .description("print the records as JSON lines, oldest first")
    .action(async ({ tenant, limit }: { tenant?: string; limit?: number }) => {
      const { showAudit } = await import("./anvil-audit.ts");
      const filter = {
        ...(tenant !== undefined && { tenantId: tenant }),
        ...(limit !== undefined && { limit }),
      };
      onExit(await showAudit(process.env, filter, output));
    });
  audit
    .command("prune")
    .option("--keep-last <n>", "keep at most the newest n records; 0 for no limit", wholeNumber, 0)
    .option("--max-age-seconds <n>", "keep nothing older; 0 for no limit", wholeNumber, 0)
    .description("remove old records")
    .action(async (retention: { keepLast: number; maxAgeSeconds: number }) => {
      const { pruneAudit } = await import("./anvil-audit.ts");
      onExit(await pruneAudit(process.env, retention, output));
    });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

function settingsHelp(): string {
  const rows = Object.entries(SETTINGS).map(([name, { variable, meaning, fallback }]) => [
    `  ${variable}`,
    name,
    `${meaning} (${fallback})`,
  ]);
  return `Variables, which win over the keys of configs/anvil-mcp.yaml or of the file ANVIL_MCP_CONFIG names:\n${formatTable(rows)}`;
}
