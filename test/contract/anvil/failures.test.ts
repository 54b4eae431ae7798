/** The contract's table of failures, one test a row, and the like of them. Its rows on settings: test/unit/anvil/load-config.test.ts */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { Adapter } from "./adapter.ts";
import { AGENT_TOKEN, FakeDaemon } from "./fake-daemon.ts";

let adapter: Adapter;
beforeEach(async () => {
  adapter = await Adapter.start((directory) => ({
    sessionStorePath: directory.join("store", "sessions.json"),
  }));
});
afterEach(() => adapter[Symbol.asyncDispose]());

function storePath(): string {
  return adapter.directory.join("store", "sessions.json");
}

/** Puts there what a rename cannot replace, once the store was read. */
async function breakStore(): Promise<void> {
  await adapter.refusal("anvil_stop_vm", { session_name: "nobody" });
  rmSync(storePath(), { force: true });
  mkdirSync(storePath());
}

function repairStore(): void {
  rmSync(storePath(), { recursive: true });
}

test("a duplicate session name is refused before the daemon is called", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  expect(await adapter.refusal("anvil_spawn_vm", { session_name: "work" })).toBe(
    'session "work" already exists',
  );
  expect(adapter.daemon.lines).toEqual(["POST /vms"]);
});

test("an unknown session name is refused before the daemon is called", async () => {
  expect(await adapter.refusal("anvil_stop_vm", { session_name: "work" })).toBe('unknown session "work"');
  expect(adapter.daemon.lines).toEqual([]);
});

test.each([
  [404, "VM not found\n"],
  [409, '{"error":"a diff depends on it"}'],
  [503, "agent busy"],
  [302, ""],
])("a daemon's %i is told with its status and its body as it came", async (status, body) => {
  adapter.daemon.answer = () => new Response(body, { status, headers: { location: "http://127.0.0.1/" } });
  const text = `daemon returned status ${status}: ${body}`;
  expect(await adapter.refusal("anvil_run_task", { vm_id: "vm-1", prompt: "x" })).toBe(text);
  expect(await adapter.refusal("anvil_delete_snapshot", { snapshot_id: "s" })).toBe(text);
  expect(await adapter.refusal("anvil_get_flock", { flock_id: "f" })).toBe(text);
  expect(adapter.daemon.lines).toHaveLength(3);
});

test("a daemon that is not there is told with what was sent where", async () => {
  const gone = new FakeDaemon();
  const { url } = gone;
  await gone[Symbol.asyncDispose]();
  await using other = await Adapter.start(() => ({ hosts: [{ name: "other", endpoint: url }] }));
  expect(await other.refusal("anvil_list_flocks")).toBe(
    `send daemon request: GET /flocks to ${url}: nothing listens there. Start the daemon: ignition-mcp daemon`,
  );
});

test("a VM whose name cannot be bound is deleted again", async () => {
  adapter.daemon.answer = async ({ method, path }) => {
    if (method !== "POST" || path !== "/vms" || adapter.daemon.requests.length > 1) return null;
    await adapter.ok("anvil_spawn_vm", { session_name: "work" }); // takes the name while this one is made
    return null;
  };
  expect(await adapter.refusal("anvil_spawn_vm", { session_name: "work" })).toBe(
    'session "work" already exists; VM "vm-2" was deleted again',
  );
  expect(adapter.daemon.lines).toEqual(["POST /vms", "POST /vms", "DELETE /vms/vm-2"]);
  await adapter.ok("anvil_stop_vm", { session_name: "work" });
  expect(adapter.daemon.lines.at(-1)).toBe("POST /vms/vm-1/stop");
});

test("a VM whose name cannot be saved is deleted again, and the name is free", async () => {
  await breakStore();
  expect(await adapter.refusal("anvil_spawn_vm", { session_name: "work" })).toMatch(
    /^save session store ".*sessions\.json": .*; VM "vm-1" was deleted again$/s,
  );
  expect(adapter.daemon.lines).toEqual(["POST /vms", "DELETE /vms/vm-1"]);
  expect(await adapter.refusal("anvil_stop_vm", { session_name: "work" })).toBe('unknown session "work"');
});

test("a VM that cannot be deleted again is named", async () => {
  await breakStore();
  adapter.daemon.answer = ({ method }) => (method === "DELETE" ? new Response("no", { status: 500 }) : null);
  expect(await adapter.refusal("anvil_spawn_vm", { session_name: "work" })).toEndWith(
    '; VM "vm-1" could not be deleted (daemon returned status 500: no); delete it with anvil_delete_vm',
  );
});

test("a restored VM whose name cannot be bound is kept and named", async () => {
  adapter.daemon.answer = async ({ path }) => {
    if (path.endsWith("/restore")) await adapter.ok("anvil_spawn_vm", { session_name: "work" });
    return null;
  };
  const text = await adapter.refusal("anvil_restore_snapshot", {
    snapshot_id: "snap-1",
    session_name: "work",
  });
  expect(text).toBe(
    'bind session "work" to restored VM "vm-2": session "work" already exists. The restored VM was not deleted: use it by its vm_id, or delete it with anvil_delete_vm.',
  );
  expect(adapter.daemon.lines).not.toContain("DELETE /vms/vm-2");
});

test("a restored VM whose name cannot be saved is kept and named, and the name is free", async () => {
  await breakStore();
  const args = { snapshot_id: "snap-1", session_name: "work" };
  const text = await adapter.refusal("anvil_restore_snapshot", args);
  expect(text).toStartWith('bind session "work" to restored VM "vm-1": save session store ');
  expect(adapter.daemon.lines).toEqual(["POST /snapshots/snap-1/restore"]);
  repairStore();
  expect(await adapter.ok("anvil_restore_snapshot", args)).toMatchObject({ vm_id: "vm-2" });
});

test("names that cannot be removed after a delete come back, and the delete's answer is told", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  await breakStore();
  expect(await adapter.refusal("anvil_delete_vm", { session_name: "work" })).toMatch(
    /^delete VM "vm-1" succeeded with status 200 body \{"status":"stopped","vm_id":"vm-1"\}, but its session names could not be removed: save session store /,
  );
  await adapter.ok("anvil_get_vm_health", { session_name: "work" });
  expect(adapter.daemon.lines.filter((line) => line.startsWith("POST /vms"))).toHaveLength(1);
});

test("names that cannot be removed after a snapshot come back, and the snapshot is told", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  await breakStore();
  const args = { session_name: "work", stop_after: true };
  expect(await adapter.refusal("anvil_create_snapshot", args)).toStartWith(
    'snapshot "snap-1" of VM "vm-1" succeeded, but the VM\'s session names could not be removed: save session store ',
  );
  await adapter.ok("anvil_get_vm_health", { session_name: "work" });
});

test("a delete that fails keeps the name", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  adapter.daemon.answer = ({ method }) => (method === "DELETE" ? new Response("no", { status: 500 }) : null);
  await adapter.refusal("anvil_delete_vm", { session_name: "work" });
  await adapter.ok("anvil_stop_vm", { session_name: "work" });
});

test("a delete of a VM that is gone is refused in the daemon's words, and frees the name", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  adapter.daemon.answer = ({ method }) =>
    method === "DELETE" ? new Response("VM not found\n", { status: 404 }) : null;
  const args = { session_name: "work" };
  expect(await adapter.refusal("anvil_delete_vm", args)).toBe("daemon returned status 404: VM not found\n");
  expect(JSON.parse(readFileSync(storePath(), "utf8"))).toEqual({ sessions: {} });
  expect(await adapter.ok("anvil_spawn_vm", args)).toMatchObject({ vm_id: "vm-2", session_name: "work" });
});

test("a task that takes longer than its timeout fails, and the request ends", async () => {
  void adapter.daemon.fallSilent();
  const text = await adapter.refusal("anvil_run_task", { vm_id: "vm-1", prompt: "x", timeout_seconds: 1 });
  expect(text).toContain("POST /vms/vm-1/tasks");
  expect(text).toEndWith(
    "no answer within 1 s (timeout_seconds). The request was given up, which ends its task.",
  );
  await eventually("the request to end", () => adapter.daemon.abandoned.length > 0);
  expect(adapter.daemon.abandoned).toEqual(["POST /vms/vm-1/tasks"]);
});

test("the default timeout bounds a task whose caller gives none", async () => {
  await using hasty = await Adapter.start(() => ({ defaultTimeoutMs: 100 }));
  void hasty.daemon.fallSilent();
  expect(await hasty.refusal("anvil_run_task", { vm_id: "vm-1", prompt: "x" })).toContain(
    "no answer within 0.1 s (default_timeout_seconds).",
  );
});

test.each([
  ["anvil_spawn_vm", {}, "not json"],
  ["anvil_spawn_vm", {}, '{"vm_id":"../x","guest_ip":"","agent_url":""}'],
  ["anvil_list_snapshots", {}, '{"snapshots":[]}'],
  ["anvil_get_flock", { flock_id: "f" }, "[]"],
])("an answer to %s %j that is not as documented is refused: %s", async (tool, args, body) => {
  adapter.daemon.answer = () => new Response(body);
  const text = await adapter.refusal(tool, args);
  expect(text).toContain("but not as documented");
  expect(text).not.toContain(body);
});

test("no tool and no failure shows an agent_token, however the daemon wraps it", async () => {
  const shown: unknown[] = [
    await adapter.call("anvil_spawn_vm", { session_name: "work" }),
    await adapter.call("anvil_restore_snapshot", { snapshot_id: "snap-1" }),
    await adapter.call("anvil_create_snapshot", { session_name: "work", stop_after: false }),
    await adapter.call("anvil_list_snapshots"),
    await adapter.call("anvil_spawn_flock", { task: "t", roles: ["worker"] }),
    await adapter.call("anvil_list_flocks"),
    await adapter.call("anvil_get_flock", { flock_id: "f" }),
  ];
  const leak = JSON.stringify({ agent_token: AGENT_TOKEN, agent_tokens: { a: AGENT_TOKEN }, error: "x" });
  for (const status of [200, 500]) {
    adapter.daemon.answer = () => new Response(leak, { status });
    shown.push(await adapter.call("anvil_get_vm_health", { session_name: "work" }));
    shown.push(await adapter.call("anvil_delete_flock", { flock_id: "f" }));
  }
  expect(JSON.stringify(shown)).not.toContain(AGENT_TOKEN);
  expect(readFileSync(storePath(), "utf8")).not.toContain(AGENT_TOKEN);
});

test("names are saved in the documented shape, in a private file of a private directory", async () => {
  await adapter.ok("anvil_spawn_vm", { session_name: "work" });
  expect(JSON.parse(readFileSync(storePath(), "utf8"))).toEqual({ sessions: { work: "vm-1" } });
  expect(statSync(storePath()).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(storePath())).mode & 0o777).toBe(0o700);
});
