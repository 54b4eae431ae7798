import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import { parseArguments } from "../mcp/parse-arguments.ts";
import type { PortableObject } from "../mcp/portable-schema.ts";
import type { ToolDocument } from "../mcp/tool.ts";
import type { CallAudit } from "./call-audit.ts";
import type { DaemonClient } from "./daemon-client.ts";
import { resourceId, trimmed } from "./input-rules.ts";
import { argumentsSchema, type Fields, type Given } from "./input-schema.ts";
import type { SessionStore } from "./session-store.ts";

/** What one call works with. */
export interface AnvilCall {
  daemon: DaemonClient;
  sessions: SessionStore;
  audit: CallAudit;
  /** Empty when there is none */
  tenantId: string;
  defaultTimeoutMs: number;
  signal: AbortSignal;
}

export type Output = Record<string, unknown>;

export interface AnvilTool {
  document: ToolDocument;
  /** The request it makes of the daemon, for the audit */
  operation: string;
  /** Checks names and types of the arguments; throws `ArgumentError`. The result has them all, checked. */
  parse(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  perform(checked: Readonly<Record<string, unknown>>, call: AnvilCall): Promise<Output>;
}

interface AnvilToolDefinition<F extends Fields, Required extends keyof F> {
  name: string;
  description: string;
  fields: F;
  required: readonly Required[];
  output: PortableObject;
  annotations: ToolAnnotations;
  operation: string;
  /**
   * Refuses arguments that break a rule, then makes the request inside of `call.audit.around`. Resolves with the
   * result's members; undefined ones are left out.
   */
  perform(given: Given<F, Required>, call: AnvilCall): Promise<Output>;
}

export function defineAnvilTool<const F extends Fields, const Required extends keyof F & string = never>(
  definition: AnvilToolDefinition<F, Required>,
): AnvilTool {
  const { name, description, fields, required, output, annotations, operation } = definition;
  const schema = argumentsSchema(fields, required);
  const inputSchema = {
    type: "object",
    properties: fields,
    ...(required.length > 0 && { required }),
  } as const;
  return {
    document: { name, description, inputSchema, outputSchema: output, annotations },
    operation,
    parse: (given) => parseArguments(schema, given),
    perform: (checked, call) => definition.perform(checked as Given<F, Required>, call),
  };
}

interface VmIdentity {
  vm_id?: string;
  session_name?: string;
}

/** The VM that `vm_id`, or else `session_name`, stands for, as the subject of an audit. */
export async function resolveVm(given: VmIdentity, { sessions }: AnvilCall) {
  const sessionAlias = trimmed(given.session_name);
  const vmId = resourceId("vm_id", await sessions.resolve(trimmed(given.vm_id), sessionAlias));
  return { vmId, sessionAlias };
}
