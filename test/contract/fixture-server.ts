/**
 * The real server over this process's stdio, in front of sessions that a test scripts; see `FakeSessions`.
 * The first argument is the tool set.
 */
import { createStderrLogger } from "../../src/cli/stderr-logger.ts";
import { LazySessions } from "../../src/mcp/lazy-sessions.ts";
import { serveStdio } from "../../src/mcp/serve-stdio.ts";
import { SessionTools } from "../../src/mcp/session-tools.ts";
import { FakeSessions } from "./fake-sessions.ts";

const log = createStderrLogger("warn");
const facts = {
  idleMs: 600_000,
  net: false,
  egress: { kind: "deny_all" },
  tools: process.argv[2] === "all" ? "all" : "core",
} as const;
const sessions = new LazySessions(async () => new FakeSessions());
await serveStdio(new SessionTools(facts, sessions, log), log);
process.exit(0);
