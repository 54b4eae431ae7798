/** The adapter as a process: its start, its end, and what it writes where. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { RawClient } from "../../support/raw-client.ts";
import { StdioClient } from "../../support/stdio-client.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { AGENT_TOKEN, FakeDaemon } from "./fake-daemon.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const OPERATOR_KEY = "operator-key-1";

let home: TemporaryDirectory;
beforeEach(() => {
  home = new TemporaryDirectory();
});
afterEach(() => home[Symbol.dispose]());

function environment(env: Record<string, string>): Record<string, string> {
  return { HOME: home.path, PATH: process.env["PATH"] ?? "", BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0", ...env };
}

function connect(env: Record<string, string>): Promise<StdioClient> {
  const args = ["--cwd", home.path, MAIN, "anvil"];
  return StdioClient.start({ command: process.execPath, args, env: environment(env) });
}

async function invoke(args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, MAIN, "anvil", ...args], {
    env: environment(env),
    cwd: home.path,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

test("a client that only lists tools needs no daemon and leaves no trace", async () => {
  await using server = await connect({
    ANVIL_MCP_SESSION_STORE: home.join("names", "sessions.json"),
    ANVIL_MCP_AUDIT_LOG: home.join("audit", "audit.jsonl"),
  });
  expect((await server.client.listTools()).tools).toHaveLength(19);
  expect(server.client.getServerVersion()).toMatchObject({ name: "anvil-mcp", version: "v0.1.0" });
  expect(readdirSync(home.path)).toEqual([]);
});

test("settings that are wrong end the start with 78 and a line each", async () => {
  expect(await invoke([], { ANVIL_DAEMON_URL: "ftp://x", ANVIL_MCP_TENANT_ID: "a b" })).toEqual({
    code: 78,
    out: "",
    err:
      "ignition-mcp: ANVIL_DAEMON_URL must have the scheme http or https.\n" +
      'ANVIL_MCP_TENANT_ID must be at most 64 of A-Z a-z 0-9 . _ - that start with a letter or digit, without "..".\n',
  });
});

test("a file that is found in the current directory is told on stderr, one that is named is not", async () => {
  mkdirSync(home.join("configs"));
  const path = home.join("configs", "anvil-mcp.yaml");
  writeFileSync(path, "default_tenant_id: team-1");
  expect((await invoke([])).err).toContain(JSON.stringify(path));
  expect(await invoke([], { ANVIL_MCP_CONFIG: path })).toEqual({ code: 0, out: "", err: "" });
});

test("a damaged store ends the start and stays as it is", async () => {
  const path = home.join("sessions.json");
  writeFileSync(path, '{"sessions": {"work": "vm-1"');
  const { code, out, err } = await invoke([], { ANVIL_MCP_SESSION_STORE: path });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain(`load session store "${path}": it is not JSON of the shape`);
  expect(readFileSync(path, "utf8")).toBe('{"sessions": {"work": "vm-1"');
  expect(readdirSync(home.path)).toEqual(["sessions.json"]);
});

test("a store in use is refused to a second process, which names the first and can list its tools", async () => {
  await using daemon = new FakeDaemon();
  const env = { ANVIL_DAEMON_URL: daemon.url, ANVIL_MCP_SESSION_STORE: home.join("sessions.json") };
  await using first = await connect(env);
  await first.callOk("anvil_spawn_vm", { session_name: "work" });
  await using second = await connect(env);
  expect((await second.client.listTools()).tools).toHaveLength(19);
  const { isError, text } = await second.call("anvil_spawn_vm", { session_name: "other" });
  expect(isError).toBe(true);
  expect(text).toContain(`sessions.json" is used by process ${first.pid}, and one process may write it.`);
  expect(daemon.lines).toEqual(["POST /vms"]);
});

test("an adapter that is started while the one before it ends has its names", async () => {
  await using daemon = new FakeDaemon();
  const env = { ANVIL_DAEMON_URL: daemon.url, ANVIL_MCP_SESSION_STORE: home.join("sessions.json") };
  await using first = await connect(env);
  await first.callOk("anvil_spawn_vm", { session_name: "work" });
  await using second = await connect(env);
  const used = second.callOk("anvil_get_vm_health", { session_name: "work" });
  await first[Symbol.asyncDispose]();
  await used;
  expect(daemon.lines.at(-1)).toBe("GET /vms/vm-1/health");
});

test.each(["link", "folder"])("a %s where the audit should be ends the start", async (what) => {
  const path = home.join("audit.jsonl");
  if (what === "link") symlinkSync("/dev/null", path);
  else mkdirSync(path);
  const { code, err } = await invoke([], { ANVIL_MCP_AUDIT_LOG: path });
  expect([code, err]).toEqual([1, expect.stringContaining(`write runtime audit "${path}": `)]);
});

test("names outlive the adapter, also one that was killed", async () => {
  await using daemon = new FakeDaemon();
  const env = { ANVIL_DAEMON_URL: daemon.url, ANVIL_MCP_SESSION_STORE: home.join("deep", "sessions.json") };
  {
    await using first = await connect(env);
    await first.callOk("anvil_spawn_vm", { session_name: "work" });
    process.kill(first.pid, "SIGKILL");
  }
  await using second = await connect(env);
  await second.callOk("anvil_get_vm_health", { session_name: "work" });
  expect(daemon.lines.at(-1)).toBe("GET /vms/vm-1/health");
});

/** A task that the daemon does not answer is under way. */
async function startTask(daemon: FakeDaemon, env: Record<string, string>) {
  const asked = daemon.fallSilent();
  const client = new RawClient({
    command: process.execPath,
    args: [MAIN, "anvil"],
    env: environment({ ANVIL_DAEMON_URL: daemon.url, ...env }),
  });
  await client.initialize();
  const { reply } = client.start("tools/call", {
    name: "anvil_run_task",
    arguments: { vm_id: "vm-1", prompt: "x" },
  });
  await asked;
  return { client, reply };
}

test("the end of input ends a call in flight with an answer, the request, and the claim on the store", async () => {
  await using daemon = new FakeDaemon();
  const { client, reply } = await startTask(daemon, { ANVIL_MCP_SESSION_STORE: home.join("sessions.json") });
  await using _ended = client;
  client.endInput();
  expect(JSON.stringify(await reply)).toContain("the adapter is shutting down.");
  expect(await client.exited()).toBe(0);
  expect(existsSync(home.join("sessions.json.lock"))).toBe(false);
  await eventually("the request to end", () => daemon.abandoned.length > 0);
  expect(daemon.abandoned).toEqual(["POST /vms/vm-1/tasks"]);
});

test.each(["the end of input", "SIGTERM"])(
  "with an audit, %s lets a call in flight be recorded and answered",
  async (end) => {
    await using daemon = new FakeDaemon();
    const { client, reply } = await startTask(daemon, {
      ANVIL_MCP_AUDIT_LOG: home.join("audit.jsonl"),
      ANVIL_MCP_TENANT_ID: "team-1",
    });
    await using _ended = client;
    if (end === "SIGTERM") client.kill("SIGTERM");
    else client.endInput();
    expect(JSON.stringify(await reply)).toContain("the adapter is shutting down.");
    expect(await client.exited()).toBe(0);
    expect(JSON.parse(readFileSync(home.join("audit.jsonl"), "utf8"))).toMatchObject({
      tool_name: "anvil_run_task",
      vm_id: "vm-1",
      result_code: "error",
    });
    expect(readdirSync(home.path)).toEqual(["audit.jsonl"]);
  },
);

test("a VM without its name is deleted again, also when the input ends meanwhile", async () => {
  await using daemon = new FakeDaemon();
  const { promise: deleting, resolve } = Promise.withResolvers<void>();
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  daemon.answer = async ({ method }) => {
    if (method === "POST") mkdirSync(home.join("sessions.json"));
    if (method !== "DELETE") return null;
    resolve();
    await mayEnd;
    return null;
  };
  const env = environment({
    ANVIL_DAEMON_URL: daemon.url,
    ANVIL_MCP_SESSION_STORE: home.join("sessions.json"),
    IGN_MCP_LOG: "info",
  });
  await using client = new RawClient({ command: process.execPath, args: [MAIN, "anvil"], env });
  await client.initialize();
  const { reply } = client.start("tools/call", {
    name: "anvil_spawn_vm",
    arguments: { session_name: "work" },
  });
  await deleting;
  client.endInput();
  await client.stderrHas("shutting down");
  end();
  expect(JSON.stringify(await reply)).toContain("was deleted again");
  expect(await client.exited()).toBe(0);
  expect(daemon.abandoned).toEqual([]);
});

test("a call that is cancelled ends its request", async () => {
  await using daemon = new FakeDaemon();
  const asked = daemon.fallSilent();
  await using server = await connect({ ANVIL_DAEMON_URL: daemon.url });
  const cancel = new AbortController();
  const call = server.call("anvil_run_task", { vm_id: "vm-1", prompt: "x" }, { signal: cancel.signal });
  await asked;
  cancel.abort();
  await expect(call).rejects.toThrow();
  await eventually("the request to end", () => daemon.abandoned.length > 0);
  expect(daemon.abandoned).toEqual(["POST /vms/vm-1/tasks"]);
  daemon.answer = () => null;
  await server.callOk("anvil_get_vm_health", { vm_id: "vm-1" });
});

test("neither the agents' tokens nor the operator's are in any output, log or audit", async () => {
  await using daemon = new FakeDaemon();
  const auditPath = home.join("audit.jsonl");
  await using server = await connect({
    ANVIL_DAEMON_URL: daemon.url,
    ANVIL_API_TOKEN: OPERATOR_KEY,
    ANVIL_MCP_AUDIT_LOG: auditPath,
    ANVIL_MCP_TENANT_ID: "team-1",
    IGN_MCP_LOG: "debug",
  });
  const answers = [
    await server.call("anvil_spawn_vm", { profile: "dev" }),
    await server.call("anvil_restore_snapshot", { snapshot_id: "snap-1" }),
    await server.call("anvil_spawn_flock", { task: "t", roles: ["worker"] }),
  ];
  daemon.answer = () => new Response(`{"agent_token": "${AGENT_TOKEN}"}`, { status: 500 });
  answers.push(await server.call("anvil_stop_vm", { vm_id: "vm-1" }));
  const shown = JSON.stringify(answers) + server.stderr + readFileSync(auditPath, "utf8");
  expect(shown).toContain("anvil_spawn_flock");
  expect(shown).not.toContain(AGENT_TOKEN);
  expect(shown).not.toContain(OPERATOR_KEY);
});

test.each(["HTTP_PROXY", "http_proxy", "ALL_PROXY"])(
  "%s is not used: the token is for the daemon alone",
  async (variable) => {
    await using daemon = new FakeDaemon();
    await using proxy = new FakeDaemon();
    const env = { ANVIL_DAEMON_URL: daemon.url, ANVIL_API_TOKEN: OPERATOR_KEY, [variable]: proxy.url };
    await using server = await connect(env);
    await server.callOk("anvil_list_flocks");
    expect([daemon.lines, proxy.lines]).toEqual([["GET /flocks"], []]);
  },
);

test("the audit is listed by tenant and pruned from the command line", async () => {
  await using daemon = new FakeDaemon();
  const env = { ANVIL_DAEMON_URL: daemon.url, ANVIL_MCP_AUDIT_LOG: home.join("audit.jsonl") };
  {
    await using server = await connect(env);
    for (const tenant_id of ["a", "b", "a"]) await server.callOk("anvil_list_flocks", { tenant_id });
  }
  const listed = await invoke(["audit", "ls", "--tenant", "a", "--limit", "1"], env);
  expect(listed.out.trimEnd().split("\n")).toHaveLength(1);
  expect(JSON.parse(listed.out)).toMatchObject({ tenant_id: "a", tool_name: "anvil_list_flocks" });
  expect(await invoke(["audit", "prune", "--keep-last", "2"], env)).toMatchObject({
    code: 0,
    err: "2 records are kept.\n",
  });
  expect((await invoke(["audit", "ls"], env)).out.match(/"tenant_id":"[ab]"/g)).toEqual([
    '"tenant_id":"b"',
    '"tenant_id":"a"',
  ]);
  expect(await invoke(["audit", "ls"])).toMatchObject({ code: 78 });
  expect(await invoke(["audit", "prune", "--keep-last", "-1"], env)).toMatchObject({ code: 2 });
});
