import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";

const INSPECTOR_PATH = join(resolve(import.meta.dir, "../.."), "node_modules/.bin/mcp-inspector");

async function inspect(home: TestHome, args: string[]): Promise<unknown> {
  const env = home.env();
  const passed = Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const child = Bun.spawn([INSPECTOR_PATH, "--cli", EXECUTABLE_PATH, ...passed, ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const status = await child.exited;
  if (status !== 0) throw new Error(`the inspector exited with ${status}: ${stderr}${stdout}`);
  return JSON.parse(stdout);
}

describeWithVms("the MCP inspector", () => {
  test("finds nothing to object to in the tools", async () => {
    using home = new TestHome();
    const { tools } = (await inspect(home, ["--method", "tools/list", "--strict"])) as { tools: unknown[] };
    expect(tools).toHaveLength(5);
  });

  test("can call a tool", async () => {
    using home = new TestHome();
    const call = ["--method", "tools/call", "--tool-name", "open_session"];
    expect(await inspect(home, call)).toMatchObject({
      structuredContent: { session_id: expect.stringMatching(/^ses_[a-z2-7]+$/) },
    });
  });
});
