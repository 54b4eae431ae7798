import type { Logger } from "../base/logger.ts";
import type { Config, Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { baseUrlOf, isLocal, type ListenAddress } from "../config/listen-address.ts";
import { Engine } from "../engine/engine.ts";
import { loadEngineSettings } from "../engine/engine-settings.ts";
import { TokenList } from "../engine/http/token-list.ts";
import { listen } from "../engine/listener.ts";
import { LastingMachines } from "../engine/vms/lasting-machines.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOnBug } from "./exit-on-bug.ts";
import { createStderrLogger } from "./stderr-logger.ts";

/** Serves the engine's HTTP API until SIGTERM or SIGINT. */
export async function runDaemon(config: Config, env: Environment, endVms: boolean): Promise<ExitCode> {
  const settings = loadEngineSettings(env, config);
  const tokens = new TokenList(env);
  if (!isLocal(settings.listen) && tokens.isEmpty) {
    throw new ConfigError([
      "ANVIL_API_ADDR can be reached from other machines, and there is no token; set EPHEMERA_API_TOKEN, or listen on 127.0.0.1 or unix:/path.",
    ]);
  }
  if (config.net) {
    throw new ConfigError([
      "IGN_MCP_NET would give VMs a network past their egress policy; unset it for the engine.",
    ]);
  }
  const log = createStderrLogger(config.logLevel);
  exitOnBug(log);
  const stopped = untilStopped();
  process.on("SIGHUP", () => reloadTokens(tokens, log));
  const machines = new LastingMachines(config, settings.workDir, log);
  const engine = await Engine.open(settings, { machines, tokens, log });
  let wasStopped = false;
  try {
    const listener = await listen(engine.app, settings.listen);
    settings.listen = listener.address;
    process.stderr.write(`ignition-mcp: the engine listens on ${whereabouts(listener.address)}\n`);
    await stopped;
    wasStopped = true;
    await engine.closeStreams();
    await listener.stop();
  } finally {
    // One that fails leaves what it has adopted to the next engine.
    await engine.close({ endVms: endVms && wasStopped });
  }
  return EXIT.ok;
}

function whereabouts(address: ListenAddress): string {
  return "unix" in address ? `unix:${address.unix}` : baseUrlOf(address);
}

function untilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.on("SIGTERM", () => resolve());
  process.on("SIGINT", () => resolve());
  return promise;
}

function reloadTokens(tokens: TokenList, log: Logger): void {
  try {
    tokens.reload();
    log.info({}, "the tokens were read again");
  } catch (error) {
    log.error({ err: error }, "the tokens could not be read again; the old ones stay");
  }
}
