import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { PortableObject, PortableSchema } from "./portable-schema.ts";

/** Some clients show only the text to the model, others only the structure: both carry everything. */
export function jsonResult(value: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value };
}

/** What tools answer that have nothing to tell. */
export function okResult(): CallToolResult {
  return { content: [{ type: "text", text: "ok" }], structuredContent: { result: "ok" } };
}

/** Why a call failed, for a model to act on. */
export interface Failure {
  code: string;
  /** One sentence: what failed, why, what to do next */
  message: string;
  /** Whether the same call may succeed later */
  retryable: boolean;
}

export function failureResult({ code, message, retryable }: Failure): CallToolResult {
  return {
    isError: true,
    content: [{ type: "text", text: `${code}: ${message}` }],
    structuredContent: { error: { code, message, retryable } },
  };
}

/**
 * Schema of a result, with the members a caller decides by; others may come. Nothing is required in it: clients hold
 * the structure of a failed call, which has only `error`, against the same schema.
 */
export function resultSchema(properties: Record<string, PortableSchema>): PortableObject {
  return { type: "object", properties };
}
