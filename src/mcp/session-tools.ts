import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import packageJson from "../../package.json" with { type: "json" };
import type { Logger } from "../base/logger.ts";
import type { CallContext } from "../session/session-service.ts";
import { describeFailure } from "./call-failure.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import type { LazySessions } from "./lazy-sessions.ts";
import type { ServerFacts, Tool, ToolDocument } from "./tool.ts";
import { describeTools, toolsOf } from "./tool-list.ts";
import { failureResult } from "./tool-result.ts";
import type { ToolService } from "./tool-service.ts";

/** The tools on sessions. Nothing is opened or written before the first sound call. */
export class SessionTools implements ToolService {
  readonly serverInfo = { name: "ignition-mcp", version: packageJson.version };
  readonly instructions = INSTRUCTIONS;
  readonly documents: readonly ToolDocument[];
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #sessions: LazySessions;
  readonly #log: Logger;

  constructor(facts: ServerFacts, sessions: LazySessions, log: Logger) {
    this.documents = describeTools(facts);
    this.#tools = toolsOf(facts.tools);
    this.#sessions = sessions;
    this.#log = log;
  }

  async call(
    name: string,
    given: Readonly<Record<string, unknown>>,
    call: CallContext,
  ): Promise<CallToolResult> {
    try {
      const perform = this.#tools.get(name)!.prepare(given);
      const service = await this.#sessions.get();
      return await perform(service, call);
    } catch (error) {
      return failureResult(describeFailure(error, this.#log));
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sessions[Symbol.asyncDispose]();
  }
}
