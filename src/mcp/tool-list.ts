import type { ServerFacts, Tool, ToolDocument } from "./tool.ts";
import { close } from "./tools/close.ts";
import { openSession } from "./tools/open-session.ts";
import { reset } from "./tools/reset.ts";
import { run } from "./tools/run.ts";
import { writeFile } from "./tools/write-file.ts";

/** In the order clients see them, which never changes. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map([
  ["open_session", openSession],
  ["run", run],
  ["write_file", writeFile],
  ["reset", reset],
  ["close", close],
]);

export function describeTools(facts: ServerFacts): ToolDocument[] {
  return [...TOOLS.values()].map((tool) => tool.describe(facts));
}
