import { loadAdapterConfig } from "../anvil/load-config.ts";
import { type Retention, RuntimeAudit } from "../anvil/runtime-audit.ts";
import type { Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { type ConsoleOutput, print } from "./console-output.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";

/** Prints the adapter's runtime audit, one JSON record a line, oldest first. */
export async function showAudit(
  env: Environment,
  filter: { tenantId?: string; limit?: number },
  { stdout, stderr }: ConsoleOutput,
): Promise<ExitCode> {
  const { records, damagedLines } = await openAudit(env).read(filter);
  for (const record of records) await print(stdout, JSON.stringify(record));
  if (damagedLines > 0) await print(stderr, `${damagedLines} damaged lines were passed over.`);
  return EXIT.ok;
}

/** Removes what the retention does not keep. */
export async function pruneAudit(
  env: Environment,
  retention: Retention,
  { stderr }: ConsoleOutput,
): Promise<ExitCode> {
  const left = await openAudit(env).prune(retention);
  await print(stderr, `${left} records are kept.`);
  return EXIT.ok;
}

function openAudit(env: Environment): RuntimeAudit {
  const { auditLogPath } = loadAdapterConfig(env);
  if (auditLogPath !== null) return new RuntimeAudit(auditLogPath);
  throw new ConfigError([
    "There is no runtime audit: ANVIL_MCP_AUDIT_LOG names none. Set it as the adapter has it.",
  ]);
}
