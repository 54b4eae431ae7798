import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { Fault } from "../base/fault.ts";
import type { Logger } from "../base/logger.ts";
import { isTenantId, TENANT_ID_RULE } from "../base/tenant-id.ts";
import { jsonResult } from "../mcp/tool-result.ts";
import type { ToolService } from "../mcp/tool-service.ts";
import type { CallContext } from "../session/session-service.ts";
import type { AdapterConfig } from "./adapter-config.ts";
import { AdapterError } from "./adapter-error.ts";
import type { AnvilTool } from "./anvil-tool.ts";
import { CallAudit } from "./call-audit.ts";
import { DaemonClient } from "./daemon-client.ts";
import { trimmed } from "./input-rules.ts";
import { RuntimeAudit } from "./runtime-audit.ts";
import { SessionStore } from "./session-store.ts";
import { ANVIL_TOOLS } from "./tool-list.ts";

const SHUTTING_DOWN = "the adapter is shutting down.";
const TOOLS_BY_NAME = new Map(ANVIL_TOOLS.map((tool) => [tool.document.name, tool]));

/** The 19 tools in front of one daemon. */
export class AnvilTools implements ToolService {
  readonly serverInfo = { name: "anvil-mcp", version: "v0.1.0" };
  readonly documents = ANVIL_TOOLS.map((tool) => tool.document);
  readonly #config: AdapterConfig;
  readonly #daemon: DaemonClient;
  readonly #sessions: SessionStore;
  readonly #audit: RuntimeAudit | null;
  readonly #log: Logger;
  readonly #end: AbortController;
  readonly #underWay = new Set<Promise<CallToolResult>>();

  private constructor(
    config: AdapterConfig,
    sessions: SessionStore,
    audit: RuntimeAudit | null,
    end: AbortController,
    log: Logger,
  ) {
    this.#config = config;
    const [{ endpoint }] = config.hosts;
    this.#daemon = new DaemonClient({ baseUrl: endpoint, token: config.apiToken });
    this.#sessions = sessions;
    this.#audit = audit;
    this.#end = end;
    this.#log = log;
  }

  /** Rejects when the alias store cannot be read or the audit not be written. The daemon need not run yet. */
  static async open(config: AdapterConfig, log: Logger): Promise<AnvilTools> {
    const end = new AbortController();
    const audit = config.auditLogPath === null ? null : new RuntimeAudit(config.auditLogPath);
    await audit?.check();
    const sessions = await SessionStore.open(config.sessionStorePath, end.signal);
    return new AnvilTools(config, sessions, audit, end, log);
  }

  async call(
    name: string,
    given: Readonly<Record<string, unknown>>,
    { signal }: CallContext,
  ): Promise<CallToolResult> {
    if (this.#end.signal.aborted) return errorResult(SHUTTING_DOWN);
    const ended = this.#answer(TOOLS_BY_NAME.get(name)!, given, signal);
    this.#underWay.add(ended);
    try {
      return await ended;
    } finally {
      this.#underWay.delete(ended);
    }
  }

  /** Ends the requests of calls under way, and waits for what those still have to do: undo, and write their record. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error(SHUTTING_DOWN));
    await Promise.all(this.#underWay);
    await this.#sessions[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #answer(
    tool: AnvilTool,
    given: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    try {
      return jsonResult(await this.#perform(tool, given, signal));
    } catch (error) {
      return errorResult(this.#sentence(error));
    }
  }

  async #perform(tool: AnvilTool, given: Readonly<Record<string, unknown>>, signal: AbortSignal) {
    const checked = tool.parse(given);
    const tenantId = this.#tenantOf(checked["tenant_id"]);
    const { name } = tool.document;
    return await tool.perform(checked, {
      daemon: this.#daemon,
      sessions: this.#sessions,
      audit: new CallAudit(this.#audit, tenantId, { name, operation: tool.operation }),
      tenantId,
      defaultTimeoutMs: this.#config.defaultTimeoutMs,
      signal: AbortSignal.any([signal, this.#end.signal]),
    });
  }

  /** Empty when nobody needs one. */
  #tenantOf(given: unknown): string {
    const tenantId = trimmed(given as string | undefined) || (this.#config.defaultTenantId ?? "");
    if (tenantId === "" && this.#audit !== null) {
      const text = "tenant_id or ANVIL_MCP_TENANT_ID is required when runtime audit is enabled";
      throw new AdapterError("bad_input", text);
    }
    if (tenantId === "" || isTenantId(tenantId)) return tenantId;
    throw new AdapterError("bad_input", `tenant_id must be ${TENANT_ID_RULE}`);
  }

  /** A fault's sentence is meant for the caller; anything else is a bug, and its details stay in the log. */
  #sentence(error: unknown): string {
    if (error instanceof Fault) return error.message;
    this.#log.error({ err: error }, "a tool call failed in a way that is a bug");
    return "The adapter hit a bug of its own; its stderr has the details.";
  }
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
