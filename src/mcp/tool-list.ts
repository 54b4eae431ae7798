import type { ToolSet } from "../config/config.ts";
import type { ServerFacts, Tool, ToolDocument } from "./tool.ts";
import { checkpoint } from "./tools/checkpoint.ts";
import { close } from "./tools/close.ts";
import { fork } from "./tools/fork.ts";
import { listSessions } from "./tools/list-sessions.ts";
import { openSession } from "./tools/open-session.ts";
import { poll } from "./tools/poll.ts";
import { readFile } from "./tools/read-file.ts";
import { reset } from "./tools/reset.ts";
import { run } from "./tools/run.ts";
import { writeFile } from "./tools/write-file.ts";

/** In the order clients see them, which never changes. */
const CORE: readonly [string, Tool][] = [
  ["open_session", openSession],
  ["run", run],
  ["write_file", writeFile],
  ["reset", reset],
  ["close", close],
];
const MORE: readonly [string, Tool][] = [
  ["poll", poll],
  ["read_file", readFile],
  ["list_sessions", listSessions],
  ["checkpoint", checkpoint],
  ["fork", fork],
];

/** The tools of a set by name, in their order. */
export function toolsOf(set: ToolSet): ReadonlyMap<string, Tool> {
  return new Map(set === "all" ? [...CORE, ...MORE] : CORE);
}

export function describeTools(facts: ServerFacts): ToolDocument[] {
  return [...toolsOf(facts.tools).values()].map((tool) => tool.describe(facts));
}
