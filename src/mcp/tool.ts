import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type * as z from "zod";
import type { EgressSetting, ToolSet } from "../config/config.ts";
import type { CallContext, SessionService } from "../session/session-service.ts";
import { parseArguments } from "./parse-arguments.ts";
import type { PortableObject } from "./portable-schema.ts";

/** What descriptions tell about this server. */
export interface ServerFacts {
  /** In `ms` */
  idleMs: number;
  net: boolean;
  egress: Pick<EgressSetting, "kind">;
  tools: ToolSet;
}

/** One entry of tools/list. */
export interface ToolDocument {
  name: string;
  description: string;
  inputSchema: PortableObject;
  /** Left out by those beyond the five, to keep the list small */
  outputSchema?: PortableObject;
  annotations: ToolAnnotations;
}

/** The work of one call whose arguments are sound. */
export type Perform = (sessions: SessionService, call: CallContext) => Promise<CallToolResult>;

export interface Tool {
  describe(facts: ServerFacts): ToolDocument;
  /** Checks the arguments without touching a session; throws `ArgumentError`. */
  prepare(given: Readonly<Record<string, unknown>>): Perform;
}

interface ToolDefinition<Schema extends z.ZodObject> {
  describe(facts: ServerFacts): ToolDocument;
  arguments: Schema;
  perform(
    sessions: SessionService,
    given: z.output<Schema>,
    call: CallContext,
  ): CallToolResult | Promise<CallToolResult>;
}

export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool {
  return {
    describe: definition.describe,
    prepare(given) {
      const checked = parseArguments(definition.arguments, given);
      return async (sessions, call) => definition.perform(sessions, checked, call);
    },
  };
}
