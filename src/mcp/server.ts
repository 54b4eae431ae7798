import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  type CallToolRequest,
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import type { Logger } from "../base/logger.ts";
import { ProgressReporter } from "./progress-reporter.ts";
import type { ToolService } from "./tool-service.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** The tools of a service over any transport, for one client. */
export function createMcpServer(service: ToolService, log: Logger): Server {
  const { serverInfo, instructions, documents } = service;
  const server = new Server(serverInfo, {
    capabilities: { tools: {} },
    ...(instructions !== undefined && { instructions }),
  });
  server.onerror = (error) => log.warn({ err: error }, "protocol error");
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...documents] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const startedMs = performance.now();
    const result = await callTool(service, params, extra, log);
    const ms = Math.round(performance.now() - startedMs);
    log.info({ tool: params.name, failed: result.isError === true, ms }, "tool call");
    return result;
  });
  return server;
}

async function callTool(
  service: ToolService,
  params: CallToolRequest["params"],
  extra: Extra,
  log: Logger,
): Promise<CallToolResult> {
  const names = service.documents.map((document) => document.name);
  if (!names.includes(params.name)) {
    throw new McpError(
      ErrorCode.InvalidParams,
      `There is no tool ${JSON.stringify(params.name.slice(0, 64))}. The tools are ${names.join(", ")}.`,
    );
  }
  using progress = startProgress(params.name, extra, log);
  return await service.call(params.name, params.arguments ?? {}, {
    signal: extra.signal,
    ...(progress && {
      progress: (state: string) => progress.report(state),
      quote: (line: string) => progress.quote(line),
    }),
  });
}

/** Null when the client did not ask for progress. */
function startProgress(
  label: string,
  { _meta, sendNotification }: Extra,
  log: Logger,
): ProgressReporter | null {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return null;
  return new ProgressReporter(label, (update) => {
    sendNotification({ method: "notifications/progress", params: { progressToken, ...update } }).catch(
      (error: unknown) => log.debug({ err: error }, "progress not sent"),
    );
  });
}
