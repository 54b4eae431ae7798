import { AnvilTools } from "../anvil/anvil-tools.ts";
import { loadAdapterConfig } from "../anvil/load-config.ts";
import type { Environment } from "../config/config.ts";
import { loadConfig } from "../config/load-config.ts";
import { serveStdio } from "../mcp/serve-stdio.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOnBug } from "./exit-on-bug.ts";
import { createStderrLogger } from "./stderr-logger.ts";

/** The anvil adapter on stdin and stdout; ends when its client does. */
export async function serveAnvil(env: Environment): Promise<ExitCode> {
  const log = createStderrLogger(loadConfig(env).logLevel);
  exitOnBug(log);
  const config = loadAdapterConfig(env);
  const { foundFilePath } = config;
  if (foundFilePath !== null)
    log.warn(
      { path: foundFilePath },
      "settings come from a file of the current directory; ANVIL_MCP_CONFIG names another",
    );
  await serveStdio(await AnvilTools.open(config, log), log);
  return EXIT.ok;
}
