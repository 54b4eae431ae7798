import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { LazySessions } from "../mcp/lazy-sessions.ts";
import { serveStdio } from "../mcp/serve-stdio.ts";
import { SessionTools } from "../mcp/session-tools.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOnBug } from "./exit-on-bug.ts";
import { createStderrLogger } from "./stderr-logger.ts";

/** The MCP server on stdin and stdout; ends when its client does. */
export async function serve(config: Config): Promise<ExitCode> {
  await checkEgress(config);
  const log = createStderrLogger(config.logLevel);
  exitOnBug(log);
  const sessions = new LazySessions(async () => {
    const { createSessionService } = await import("../session/create-session-service.ts");
    return createSessionService(config, log);
  });
  await serveStdio(new SessionTools(config, sessions, log), log);
  return EXIT.ok;
}

/** A profile that cannot be used is told at the start, not by the first session. Throws `ConfigError`. */
async function checkEgress({ egress }: Config): Promise<void> {
  if (egress.kind !== "profile") return;
  const { loadEgressPolicy } = await import("../egress/egress-profile.ts");
  await loadEgressPolicy(egress).catch((error: Error) => {
    throw new ConfigError([`IGN_MCP_EGRESS: ${error.message}.`]);
  });
}
