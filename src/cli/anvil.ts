import { AnvilTools } from "../anvil/anvil-tools.ts";
import { loadAdapterConfig } from "../anvil/load-config.ts";
import type { Environment } from "../config/config.ts";
import { loadConfig } from "../config/load-config.ts";
import type { HttpSettings } from "../config/load-http-settings.ts";
import { serveStdio } from "../mcp/serve-stdio.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOnBug } from "./exit-on-bug.ts";
import { createStderrLogger } from "./stderr-logger.ts";

/** The anvil adapter: on stdin and stdout, where it ends with its client, or over HTTP until a signal. */
export async function serveAnvil(env: Environment, http: HttpSettings | null): Promise<ExitCode> {
  const log = createStderrLogger(loadConfig(env).logLevel);
  exitOnBug(log);
  const config = loadAdapterConfig(env);
  const { foundFilePath } = config;
  if (foundFilePath !== null)
    log.warn(
      { path: foundFilePath },
      "settings come from a file of the current directory; ANVIL_MCP_CONFIG names another",
    );
  const tools = await AnvilTools.open(config, log);
  if (http === null) await serveStdio(tools, log);
  else {
    const { sharedTools } = await import("../mcp/tool-host.ts");
    const { serveHttp } = await import("../mcp/serve-http.ts");
    await serveHttp(sharedTools(tools), http, log);
  }
  return EXIT.ok;
}
