import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { HttpSettings } from "../config/load-http-settings.ts";
import { LazySessions } from "../mcp/lazy-sessions.ts";
import { serveStdio } from "../mcp/serve-stdio.ts";
import { SessionTools } from "../mcp/session-tools.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOnBug } from "./exit-on-bug.ts";
import { createStderrLogger } from "./stderr-logger.ts";

/** The MCP server: on stdin and stdout, where it ends with its client, or over HTTP until a signal. */
export async function serve(config: Config, http: HttpSettings | null): Promise<ExitCode> {
  await checkEgress(config);
  const log = createStderrLogger(config.logLevel);
  exitOnBug(log);
  const sessions = new LazySessions(async () => {
    const { createSessionService } = await import("../session/create-session-service.ts");
    return createSessionService(config, log);
  });
  if (http === null) await serveStdio(new SessionTools(config, sessions, log), log);
  else {
    const { SessionToolHost } = await import("../mcp/tool-host.ts");
    const { serveHttp } = await import("../mcp/serve-http.ts");
    await serveHttp(new SessionToolHost(config, sessions, log), http, log);
  }
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
