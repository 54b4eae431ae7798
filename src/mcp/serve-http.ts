import type { Logger } from "../base/logger.ts";
import { baseUrlOf, isLocal } from "../config/listen-address.ts";
import type { HttpSettings } from "../config/load-http-settings.ts";
import { sendConsoleToStderr } from "./console-to-stderr.ts";
import { HttpEndpoint, MCP_PATH } from "./http-endpoint.ts";
import { HttpGate } from "./http-gate.ts";
import { HttpListener } from "./http-listener.ts";
import { HttpSessions } from "./http-sessions.ts";
import { serveUntilEnd } from "./server-lifetime.ts";
import { readTlsMaterial } from "./tls-material.ts";
import type { ToolHost } from "./tool-host.ts";

/** Serves many clients over Streamable HTTP until SIGTERM or SIGINT; then the host is disposed. */
export async function serveHttp(host: ToolHost, settings: HttpSettings, log: Logger): Promise<void> {
  sendConsoleToStderr();
  const { tokens, maxClients, idleMs } = settings;
  const gate = new HttpGate(settings);
  const isCurrent = gate.isCurrent.bind(gate);
  const sessions = new HttpSessions({ host, maxClients, idleMs, isCurrent, log });
  const endpoint = new HttpEndpoint(gate, sessions, log);
  const tls = settings.tls && readTlsMaterial(settings.tls);
  const listener = await HttpListener.open({
    address: settings.listen,
    tls,
    fetch: (request) => endpoint.fetch(request),
  });
  const reload = () => {
    attempt("the tokens", () => tokens.reload(), log);
    sessions.endStale();
    if (settings.tls) {
      const { tls: files } = settings;
      attempt("the certificate", () => listener.changeTls(readTlsMaterial(files)), log);
    }
  };
  process.on("SIGHUP", reload);
  process.stderr.write(`ignition-mcp: ${whereabouts(listener, settings)}\n`);
  await serveUntilEnd({
    transport: { flushed: () => sessions.endAll(), close: () => listener.close() },
    service: {
      async [Symbol.asyncDispose]() {
        endpoint.close();
        await host[Symbol.asyncDispose]();
      },
    },
    signals: process,
    endSignals: ["SIGINT", "SIGTERM"],
    exitNow: (code) => process.exit(code),
    log,
  });
  process.off("SIGHUP", reload);
}

/** What could not be read again stays as it was. */
function attempt(what: string, read: () => void, log: Logger): void {
  try {
    read();
    log.info({}, `${what} was read again`);
  } catch (error) {
    log.error({ err: error }, `${what} could not be read again; the old stays`);
  }
}

function whereabouts({ address }: HttpListener, { tls, tokens }: HttpSettings): string {
  const url = baseUrlOf(address).replace(/^http:/, tls ? "https:" : "http:");
  const where = "unix" in address ? `unix:${address.unix}, path ${MCP_PATH}` : `${url}${MCP_PATH}`;
  if (!tokens.isEmpty)
    return `serves MCP on ${where}${!tls && !isLocal(address) ? ", without TLS: tokens can be read on the way unless a proxy is in front" : ""}`;
  const who = "unix" in address ? "your user's processes" : "every process of this machine";
  return `serves MCP on ${where}, without a token: ${who} may use it`;
}
