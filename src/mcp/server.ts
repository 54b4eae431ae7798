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
import packageJson from "../../package.json" with { type: "json" };
import type { Logger } from "../base/logger.ts";
import { describeFailure } from "./call-failure.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import type { LazySessions } from "./lazy-sessions.ts";
import { ProgressReporter } from "./progress-reporter.ts";
import type { ServerFacts, Tool } from "./tool.ts";
import { describeTools, toolsOf } from "./tool-list.ts";
import { failureResult } from "./tool-result.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

export interface ServerParts {
  facts: ServerFacts;
  sessions: LazySessions;
  log: Logger;
}

/** The tools over any transport. Nothing is opened or written before the first sound tool call. */
export function createMcpServer({ facts, sessions, log }: ServerParts): Server {
  const tools = describeTools(facts);
  const toolsByName = toolsOf(facts.tools);
  const server = new Server(
    { name: "ignition-mcp", version: packageJson.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.onerror = (error) => log.warn({ err: error }, "protocol error");
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const startedMs = performance.now();
    const result = await callTool(toolsByName, params, extra, sessions, log);
    const ms = Math.round(performance.now() - startedMs);
    log.info({ tool: params.name, failed: result.isError === true, ms }, "tool call");
    return result;
  });
  return server;
}

async function callTool(
  tools: ReadonlyMap<string, Tool>,
  params: CallToolRequest["params"],
  extra: Extra,
  sessions: LazySessions,
  log: Logger,
): Promise<CallToolResult> {
  const tool = tools.get(params.name);
  if (!tool) {
    const known = [...tools.keys()].join(", ");
    throw new McpError(
      ErrorCode.InvalidParams,
      `There is no tool ${JSON.stringify(params.name.slice(0, 64))}. The tools are ${known}.`,
    );
  }
  using progress = startProgress(params.name, extra, log);
  try {
    const perform = tool.prepare(params.arguments ?? {});
    const service = await sessions.get();
    return await perform(service, {
      signal: extra.signal,
      ...(progress && {
        progress: (state: string) => progress.report(state),
        quote: (line: string) => progress.quote(line),
      }),
    });
  } catch (error) {
    return failureResult(describeFailure(error, log));
  }
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
