import type { Logger } from "../base/logger.ts";
import { sendConsoleToStderr } from "./console-to-stderr.ts";
import { createMcpServer } from "./server.ts";
import { serveUntilEnd } from "./server-lifetime.ts";
import { StdioTransport } from "./stdio-transport.ts";
import type { ToolService } from "./tool-service.ts";

/** Serves one client over stdin and stdout until it leaves; then the service is disposed. */
export async function serveStdio(service: ToolService, log: Logger): Promise<void> {
  sendConsoleToStderr();
  const transport = new StdioTransport(process.stdin, process.stdout);
  const ended = serveUntilEnd({
    transport,
    service,
    signals: process,
    exitNow: (code) => process.exit(code),
    log,
  });
  await createMcpServer(service, log).connect(transport);
  await ended;
}
