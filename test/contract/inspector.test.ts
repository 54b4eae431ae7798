import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Runs the inspector's command line against the fixture server. */
async function inspect(...args: string[]) {
  const inspector = join(ROOT, "node_modules/.bin/mcp-inspector");
  const command = [
    process.execPath,
    "--bun",
    inspector,
    "--cli",
    process.execPath,
    "test/contract/fixture-server.ts",
  ];
  const child = Bun.spawn([...command, ...args], { cwd: ROOT, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

test("the inspector finds no fault with the tool list", async () => {
  const { code, out, err } = await inspect("--method", "tools/list", "--strict");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(out).tools).toHaveLength(5);
}, 60_000);

test("the inspector can call a tool", async () => {
  const { code, out } = await inspect("--method", "tools/call", "--tool-name", "open_session");
  expect(code).toBe(0);
  expect(JSON.parse(out).structuredContent).toEqual({ session_id: "ses_1" });
}, 60_000);
