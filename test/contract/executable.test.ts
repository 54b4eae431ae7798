import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const MAIN = join(import.meta.dir, "../../src/main.ts");
const home = mkdtempSync(join(tmpdir(), "ignition-home-"));
afterAll(() => rmSync(home, { recursive: true }));

async function invoke(args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    env: { HOME: home, ...env },
    cwd: home,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

test("a client that only lists tools leaves no trace", async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN],
    env: { HOME: home, TMPDIR: home, BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" },
    cwd: home,
  });
  const client = new Client({ name: "prober", version: "1" });
  await client.connect(transport);
  expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual([
    "open_session",
    "run",
    "write_file",
    "reset",
    "close",
  ]);
  await client.close();
  expect(readdirSync(home)).toEqual([]);
});

test("no input at all is a client that left: nothing is printed and the exit code is 0", async () => {
  expect(await invoke([])).toEqual({ code: 0, out: "", err: "" });
  expect(await invoke(["serve"])).toEqual({ code: 0, out: "", err: "" });
});

test("exit codes tell usage, configuration and success apart, and stdout is for data only", async () => {
  expect(await invoke(["--bogus"])).toMatchObject({ code: 2, out: "" });
  expect(await invoke([], { IGN_MCP_STORE: "./mcp-store" })).toMatchObject({ code: 78, out: "" });
  expect(await invoke([], { IGN_MCP_IDLE: "5" })).toEqual({
    code: 78,
    out: "",
    err: "ignition-mcp: IGN_MCP_IDLE is not a variable of ignition-mcp; did you mean IGN_MCP_IDLE_SECS?\n",
  });
  expect(await invoke(["--version"])).toMatchObject({ code: 0, err: "" });
});

test("doctor names every check once, and says that there is no image and no base", async () => {
  const { code, out, err } = await invoke(["doctor", "--json"], {
    PATH: process.env["PATH"] ?? "",
    IGN_MCP_KERNEL: join(home, "vmlinuz"),
  });
  expect({ code, err }).toEqual({ code: 1, err: "" });
  const findings = new Map<string, { status: string; what: string }>(
    JSON.parse(out).map((finding: { id: string }) => [finding.id, finding]),
  );
  expect([...findings.keys()]).toEqual([
    "qemu",
    "image",
    "base",
    "acceleration",
    "jail",
    "carrier",
    "egress",
    "runtime_directory",
  ]);
  expect(findings.get("egress")).toMatchObject({
    status: "ok",
    what: "sessions reach nothing outside",
  });
  expect(findings.get("image")).toMatchObject({ status: "fail", what: expect.stringContaining(home) });
  expect(findings.get("base")).toMatchObject({ status: "warn", what: expect.stringContaining("base build") });
});

test("doctor says what sessions reach, and what is wrong with the profile", async () => {
  const path = join(home, "egress.json");
  const look = async () => (await invoke(["doctor"], { IGN_MCP_EGRESS: `profile:${path}` })).out;
  writeFileSync(path, '{"allow_sni":["a.example","b.example"],"allow_cidrs":["10.0.0.0/8"]}');
  expect(await look()).toMatch(
    /^ok {4}egress .*by proxy; names: 2, address ranges: 1; connections at once, of all sessions: \d+$/m,
  );
  writeFileSync(path, '{"allow_names":[]}');
  expect(await look()).toMatch(/^fail {2}egress .*"allow_names" is not a key/m);
});

test("without QEMU doctor says how to get it", async () => {
  const { code, out } = await invoke(["doctor"], { PATH: home });
  expect(code).toBe(1);
  expect(out).toMatch(/^fail {2}qemu .*not on PATH; install it: /m);
});
