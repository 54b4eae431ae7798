import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { CallContext } from "../session/session-service.ts";
import type { ToolDocument } from "./tool.ts";

/** What a server serves: some tools and what is behind them. Its disposal ends all calls in flight. */
export interface ToolService extends AsyncDisposable {
  readonly serverInfo: { name: string; version: string };
  /** Shown to the model by many clients */
  readonly instructions?: string;
  /** As tools/list gives them, in their order */
  readonly documents: readonly ToolDocument[];
  /** Calls a tool of `documents`. A failure is a result too; only a bug rejects. */
  call(name: string, given: Readonly<Record<string, unknown>>, call: CallContext): Promise<CallToolResult>;
}
