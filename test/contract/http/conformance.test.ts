/**
 * The official conformance suite's scenarios that any server must pass. Not run: those that call the suite's own
 * example tools (tools-call-*, json-schema-2020-12, elicitation-*), those of capabilities these servers do not declare
 * (logging, completion, resources, prompts), and those of clients.
 */
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { HttpProcess } from "../../support/http-process.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const ROOT = join(import.meta.dir, "../../..");
/** It has nothing that passes: it warns of streams that cannot be resumed, as here */
const ONLY_WARNS = "server-sse-polling";
const SCENARIOS = [
  "server-initialize",
  "ping",
  "tools-list",
  "server-sse-multiple-streams",
  ONLY_WARNS,
  "dns-rebinding-protection",
];

async function conform(url: string, scenario: string) {
  const suite = join(ROOT, "node_modules/.bin/conformance");
  const command = [process.execPath, "--bun", suite, "server", "--url", url, "--scenario", scenario];
  const child = Bun.spawn(command, { cwd: ROOT, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out: out + err };
}

test.each(["serve", "anvil"])(
  "%s passes the scenarios for any server",
  async (command) => {
    using home = new TemporaryDirectory();
    mkdirSync(home.join("home"));
    const env = { PATH: process.env["PATH"]!, HOME: home.join("home"), IGN_MCP_STORE: home.path };
    await using server = await HttpProcess.start([command, "--http", "127.0.0.1:0"], env);
    for (const scenario of SCENARIOS) {
      const { code, out } = await conform(server.url, scenario);
      const passed = scenario === ONLY_WARNS ? /Passed: 0\/0, 0 failed/ : /Passed: ([1-9]\d*)\/\1, 0 failed/;
      expect([scenario, code, out]).toEqual([scenario, 0, expect.stringMatching(passed)]);
    }
    expect((await server.end()).stdout).toBe("");
  },
  120_000,
);
