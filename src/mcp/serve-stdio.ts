import type { Logger } from "../base/logger.ts";
import type { SessionService } from "../session/session-service.ts";
import { sendConsoleToStderr } from "./console-to-stderr.ts";
import { LazySessions } from "./lazy-sessions.ts";
import { createMcpServer } from "./server.ts";
import { serveUntilEnd } from "./stdio-lifetime.ts";
import { StdioTransport } from "./stdio-transport.ts";
import type { ServerFacts } from "./tool.ts";

/** Serves one client over stdin and stdout until it leaves; then no VM is left. */
export async function serveStdio(
  facts: ServerFacts,
  createSessions: () => Promise<SessionService>,
  log: Logger,
): Promise<void> {
  sendConsoleToStderr();
  const sessions = new LazySessions(createSessions);
  const transport = new StdioTransport(process.stdin, process.stdout);
  const ended = serveUntilEnd({
    transport,
    sessions,
    signals: process,
    exitNow: (code) => process.exit(code),
    log,
  });
  await createMcpServer({ facts, sessions, log }).connect(transport);
  await ended;
}
