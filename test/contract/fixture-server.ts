/**
 * The real server over this process's stdio, in front of sessions that a test scripts; see `FakeSessions`.
 * The first argument is the tool set.
 */
import { createStderrLogger } from "../../src/cli/stderr-logger.ts";
import { serveStdio } from "../../src/mcp/serve-stdio.ts";
import { FakeSessions } from "./fake-sessions.ts";

const log = createStderrLogger("warn");
await serveStdio(
  {
    idleMs: 600_000,
    net: false,
    egress: { kind: "deny_all" },
    tools: process.argv[2] === "all" ? "all" : "core",
  },
  async () => new FakeSessions(),
  log,
);
process.exit(0);
