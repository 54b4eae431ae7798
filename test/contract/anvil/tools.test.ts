import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Adapter } from "./adapter.ts";

let adapter: Adapter;
beforeEach(async () => {
  adapter = await Adapter.start();
});
afterEach(() => adapter[Symbol.asyncDispose]());

test("the server says that it is anvil-mcp v0.1.0", () => {
  expect(adapter.client.getServerVersion()).toEqual({ name: "anvil-mcp", version: "v0.1.0" });
  expect(adapter.client.getServerCapabilities()).toEqual({ tools: {} });
});

/** Tool, arguments, the one request it makes (body as text or JSON), and its whole result. */
const RAW = (body: unknown, status_code = 200) => ({ status_code, body: JSON.stringify(body) });
const AGENT = {
  agent_id: "worker-1",
  role: "worker",
  vm_id: "vm-9",
  agent_url: "http://127.0.0.1/vms/vm-9",
  status: "ready",
};
const SNAPSHOT = {
  snapshot_id: "snap-1",
  source_vm_id: "vm-1",
  profile: "dev",
  created_at: "2026-07-11T00:00:00Z",
};
const FLOCK = {
  flock_id: "flock-1",
  task: "ship it",
  agents: { "worker-1": AGENT },
  created_at: "2026-07-11T00:00:00Z",
};
const MESSAGE = { timestamp: "2026-07-11T00:00:00Z", agent_id: "worker-1", body: "hello" };

const SUCCESSES: [
  tool: string,
  args: Record<string, unknown>,
  request: string,
  body: unknown,
  result: unknown,
][] = [
  [
    "anvil_spawn_vm",
    { profile: "dev", tenant_id: "team-1", egress_policy: "deny_all" },
    "POST /vms",
    { profile: "dev", tenant_id: "team-1", egress_policy: "deny_all" },
    {
      vm_id: "vm-1",
      guest_ip: "10.0.1.2",
      agent_url: "http://127.0.0.1/vms/vm-1",
      profile: "dev",
      tenant_id: "team-1",
      egress_policy: "deny_all",
    },
  ],
  [
    "anvil_run_task",
    { vm_id: "vm-1", prompt: " say it ", timeout_seconds: 5, tenant_id: "team-1" },
    "POST /vms/vm-1/tasks",
    { prompt: " say it " },
    RAW({ output: "anvil-smoke-ok\n" }),
  ],
  [
    "anvil_copy_in",
    { vm_id: "vm-1", path: " notes//./task.txt ", content: "file content" },
    "PUT /vms/vm-1/workspace?path=notes%2Ftask.txt",
    "file content",
    RAW({ path: "notes/task.txt", bytes: 12 }),
  ],
  [
    "anvil_copy_in",
    { vm_id: "vm-1", path: "a&b=c?.txt", content: "AAEC", encoding: "base64", overwrite: true },
    "PUT /vms/vm-1/workspace?path=a%26b%3Dc%3F.txt&overwrite=true",
    "\u0000\u0001\u0002",
    RAW({ path: "notes/task.txt", bytes: 3 }),
  ],
  [
    "anvil_copy_out",
    { vm_id: "vm-1", path: "notes/task.txt" },
    "GET /vms/vm-1/workspace?path=notes%2Ftask.txt",
    "",
    { path: "notes/task.txt", content: "file content", encoding: "text" },
  ],
  [
    "anvil_copy_out",
    { vm_id: "vm-1", path: "notes/../task.txt", encoding: "BASE64" },
    "GET /vms/vm-1/workspace?path=task.txt",
    "",
    { path: "task.txt", content: "ZmlsZSBjb250ZW50", encoding: "base64" },
  ],
  ["anvil_get_vm_health", { vm_id: "vm-1" }, "GET /vms/vm-1/health", "", RAW({ status: "idle" })],
  ["anvil_stop_vm", { vm_id: "vm-1" }, "POST /vms/vm-1/stop", "", RAW({ status: "stopping" })],
  ["anvil_delete_vm", { vm_id: "vm-1" }, "DELETE /vms/vm-1", "", RAW({ status: "stopped", vm_id: "vm-1" })],
  [
    "anvil_create_snapshot",
    { vm_id: "vm-1", stop_after: false, type: "DIFF", tenant_id: "team-1" },
    "POST /vms/vm-1/snapshot",
    { stop_after: false, type: "diff", tenant_id: "team-1" },
    { ...SNAPSHOT, snapshot_type: "diff" },
  ],
  [
    "anvil_create_snapshot",
    { vm_id: "vm-1", stop_after: true, type: "" },
    "POST /vms/vm-1/snapshot",
    { stop_after: true },
    { ...SNAPSHOT, snapshot_type: "full" },
  ],
  ["anvil_list_snapshots", {}, "GET /snapshots", "", { snapshots: [{ ...SNAPSHOT, snapshot_type: "full" }] }],
  [
    "anvil_restore_snapshot",
    { snapshot_id: "snap-1" },
    "POST /snapshots/snap-1/restore",
    { egress_policy: "profile" },
    {
      vm_id: "vm-1",
      guest_ip: "10.0.1.2",
      agent_url: "http://127.0.0.1/vms/vm-1",
      egress_policy: "profile",
      source_snapshot_id: "snap-1",
    },
  ],
  [
    "anvil_delete_snapshot",
    { snapshot_id: "snap-1" },
    "DELETE /snapshots/snap-1",
    "",
    RAW({ status: "deleted" }),
  ],
  [
    "anvil_spawn_flock",
    { task: " ship it ", roles: [" worker "] },
    "POST /flocks",
    { task: "ship it", roles: ["worker"], egress_policy: "profile" },
    {
      flock_id: "flock-1",
      task: "ship it",
      egress_policy: "profile",
      agents: [AGENT],
      townwall_url: "http://127.0.0.1/flocks/flock-1/wall",
      post_url: "http://127.0.0.1/flocks/flock-1/post",
    },
  ],
  ["anvil_list_flocks", { tenant_id: "team-1" }, "GET /flocks", "", { flocks: [FLOCK] }],
  ["anvil_get_flock", { flock_id: "a b?" }, "GET /flocks/a%20b%3F", "", FLOCK],
  [
    "anvil_delete_flock",
    { flock_id: "flock-1" },
    "DELETE /flocks/flock-1",
    "",
    RAW({ status: "deleted", flock_id: "flock-1" }),
  ],
  [
    "anvil_post_townwall",
    { flock_id: "flock-1", agent_id: "worker-1", body: "hello" },
    "POST /flocks/flock-1/post",
    { agent_id: "worker-1", body: "hello" },
    MESSAGE,
  ],
  [
    "anvil_get_townwall_history",
    { flock_id: "flock-1" },
    "GET /flocks/flock-1/wall/history",
    "",
    { messages: [MESSAGE] },
  ],
];

test.each(SUCCESSES)("%s %j makes the documented request and gives the documented result", async (...row) => {
  const [tool, args, request, body, result] = row;
  expect(await adapter.ok(tool, args)).toEqual(result as Record<string, unknown>);
  const { method, path, authorization, contentType, body: sent } = adapter.daemon.last;
  expect(adapter.daemon.requests).toHaveLength(1);
  expect(`${method} ${path}`).toBe(request);
  expect(authorization).toBe("Bearer operator-key");
  if (typeof body === "string") {
    expect(sent).toBe(body);
    expect(contentType).toBe(method === "PUT" ? "application/octet-stream" : null);
  } else {
    expect(JSON.parse(sent)).toEqual(body);
    expect(contentType).toBe("application/json");
  }
});

test("without a token no Authorization is sent", async () => {
  await using open = await Adapter.start(() => ({ apiToken: null }));
  await open.ok("anvil_list_flocks");
  expect(open.daemon.last.authorization).toBeNull();
});

test("an empty list and a null one are both an empty list", async () => {
  adapter.daemon.answer = () => Response.json(null);
  expect(await adapter.ok("anvil_list_snapshots")).toEqual({ snapshots: [] });
  expect(await adapter.ok("anvil_list_flocks")).toEqual({ flocks: [] });
  expect(await adapter.ok("anvil_get_townwall_history", { flock_id: "f" })).toEqual({ messages: [] });
});

test("a task is never streamed, and its body is the prompt alone", async () => {
  await adapter.ok("anvil_run_task", { vm_id: "vm-1", prompt: "hello", timeout_seconds: 9 });
  expect(adapter.daemon.last).toMatchObject({ path: "/vms/vm-1/tasks", body: '{"prompt":"hello"}' });
});

test("the default tenant is used where a call names none", async () => {
  await using tenant = await Adapter.start(() => ({ defaultTenantId: "home" }));
  await tenant.ok("anvil_spawn_vm");
  expect(JSON.parse(tenant.daemon.last.body)).toMatchObject({ tenant_id: "home" });
  await tenant.ok("anvil_spawn_vm", { tenant_id: "guest" });
  expect(JSON.parse(tenant.daemon.last.body)).toMatchObject({ tenant_id: "guest" });
});

describe("a session name", () => {
  test("stands for its VM in every tool on one, and vm_id wins over it", async () => {
    expect(await adapter.ok("anvil_spawn_vm", { session_name: " work " })).toMatchObject({
      session_name: "work",
    });
    await adapter.ok("anvil_get_vm_health", { session_name: "work" });
    expect(adapter.daemon.lines.at(-1)).toBe("GET /vms/vm-1/health");
    await adapter.ok("anvil_get_vm_health", { session_name: "work", vm_id: "vm-7" });
    expect(adapter.daemon.lines.at(-1)).toBe("GET /vms/vm-7/health");
  });

  test("outlives a stop, and ends with its VM", async () => {
    await adapter.ok("anvil_spawn_vm", { session_name: "work" });
    await adapter.ok("anvil_stop_vm", { session_name: "work" });
    await adapter.ok("anvil_get_vm_health", { session_name: "work" });
    await adapter.ok("anvil_delete_vm", { session_name: "work" });
    expect(await adapter.refusal("anvil_get_vm_health", { session_name: "work" })).toBe(
      'unknown session "work"',
    );
  });

  test("ends with a snapshot that stops its VM, and can be given to the restored one", async () => {
    await adapter.ok("anvil_spawn_vm", { session_name: "work" });
    await adapter.ok("anvil_create_snapshot", { session_name: "work", stop_after: false });
    await adapter.ok("anvil_get_vm_health", { session_name: "work" });
    await adapter.ok("anvil_create_snapshot", { session_name: "work", stop_after: true });
    expect(await adapter.refusal("anvil_stop_vm", { session_name: "work" })).toBe('unknown session "work"');
    const restored = await adapter.ok("anvil_restore_snapshot", {
      snapshot_id: "snap-1",
      session_name: "work",
    });
    expect(restored).toMatchObject({ vm_id: "vm-2", session_name: "work", source_snapshot_id: "snap-1" });
    await adapter.ok("anvil_stop_vm", { session_name: "work" });
    expect(adapter.daemon.lines.at(-1)).toBe("POST /vms/vm-2/stop");
  });
});
