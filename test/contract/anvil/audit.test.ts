import { afterEach, beforeEach, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { Adapter } from "./adapter.ts";
import { AGENT_TOKEN } from "./fake-daemon.ts";

let adapter: Adapter;
beforeEach(async () => {
  adapter = await Adapter.start((directory) => ({
    auditLogPath: directory.join("audit", "runtime.jsonl"),
    sessionStorePath: directory.join("sessions.json"),
  }));
});
afterEach(() => adapter[Symbol.asyncDispose]());

const TENANT = { tenant_id: "team-1" };

function auditPath(): string {
  return adapter.directory.join("audit", "runtime.jsonl");
}

function auditText(): string {
  return readFileSync(auditPath(), "utf8");
}

/** Records without their times. */
function records(): Record<string, unknown>[] {
  const lines = auditText().trimEnd().split("\n");
  return lines.map((line) => {
    const { timestamp, ...rest } = JSON.parse(line);
    expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z$/);
    return rest;
  });
}

test("without a tenant no call reaches the daemon", async () => {
  const text = "tenant_id or ANVIL_MCP_TENANT_ID is required when runtime audit is enabled";
  expect(await adapter.refusal("anvil_spawn_vm")).toBe(text);
  expect(await adapter.refusal("anvil_list_snapshots")).toBe(text);
  const replica = { snapshot_id: "s", source_host: "a", target_host: "b" };
  expect(await adapter.refusal("anvil_replicate_snapshot", replica)).toBe(text);
  expect(adapter.daemon.lines).toEqual([]);
});

test("a call is one line with its keys in order, in a private file", async () => {
  await adapter.ok("anvil_spawn_vm", { ...TENANT, session_name: "work" });
  expect(Object.keys(JSON.parse(auditText()))).toEqual([
    "timestamp",
    "tenant_id",
    "vm_id",
    "session_alias",
    "tool_name",
    "daemon_operation",
    "result_code",
  ]);
  expect(lstatSync(auditPath()).mode & 0o777).toBe(0o600);
});

test("each tool is recorded with its request, and what is not known is left out", async () => {
  const vm = { ...TENANT, vm_id: "vm-1" };
  await adapter.ok("anvil_spawn_vm", { ...TENANT, session_name: "work" });
  await adapter.ok("anvil_run_task", { ...TENANT, session_name: "work", prompt: "x" });
  await adapter.ok("anvil_copy_in", { ...vm, path: "a", content: "" });
  await adapter.ok("anvil_copy_out", { ...vm, path: "a" });
  await adapter.ok("anvil_get_vm_health", vm);
  await adapter.ok("anvil_stop_vm", vm);
  await adapter.ok("anvil_create_snapshot", { ...vm, stop_after: false });
  await adapter.ok("anvil_restore_snapshot", { ...TENANT, snapshot_id: "snap-1" });
  await adapter.ok("anvil_delete_snapshot", { ...TENANT, snapshot_id: "snap-1" });
  await adapter.ok("anvil_spawn_flock", { ...TENANT, task: "t", roles: ["r"] });
  await adapter.ok("anvil_list_flocks", TENANT);
  await adapter.ok("anvil_get_flock", { ...TENANT, flock_id: "f" });
  await adapter.ok("anvil_post_townwall", { ...TENANT, flock_id: "f", agent_id: "a", body: "b" });
  await adapter.ok("anvil_get_townwall_history", { ...TENANT, flock_id: "f" });
  await adapter.ok("anvil_delete_flock", { ...TENANT, flock_id: "f" });
  await adapter.ok("anvil_delete_vm", vm);
  const told = records().map((record) => {
    expect(record).toMatchObject({ tenant_id: "team-1", result_code: "success" });
    return [record["tool_name"], record["daemon_operation"], record["vm_id"], record["session_alias"]]
      .filter((part) => part !== undefined)
      .join(" | ");
  });
  expect(told).toEqual([
    "anvil_spawn_vm | POST /vms | vm-1 | work",
    "anvil_run_task | POST /vms/{vm_id}/tasks | vm-1 | work",
    "anvil_copy_in | PUT /vms/{vm_id}/workspace | vm-1",
    "anvil_copy_out | GET /vms/{vm_id}/workspace | vm-1",
    "anvil_get_vm_health | GET /vms/{vm_id}/health | vm-1",
    "anvil_stop_vm | POST /vms/{vm_id}/stop | vm-1",
    "anvil_create_snapshot | POST /vms/{vm_id}/snapshot | vm-1",
    "anvil_restore_snapshot | POST /snapshots/{snapshot_id}/restore | vm-2",
    "anvil_delete_snapshot | DELETE /snapshots/{snapshot_id}",
    "anvil_spawn_flock | POST /flocks",
    "anvil_list_flocks | GET /flocks",
    "anvil_get_flock | GET /flocks/{flock_id}",
    "anvil_post_townwall | POST /flocks/{flock_id}/post",
    "anvil_get_townwall_history | GET /flocks/{flock_id}/wall/history",
    "anvil_delete_flock | DELETE /flocks/{flock_id}",
    "anvil_delete_vm | DELETE /vms/{vm_id} | vm-1",
  ]);
});

test("what is refused before the request is not recorded", async () => {
  await adapter.refusal("anvil_run_task", { ...TENANT, vm_id: "vm-1", prompt: " " });
  await adapter.refusal("anvil_stop_vm", { ...TENANT, session_name: "nobody" });
  await adapter.ok("anvil_list_flocks", TENANT);
  expect(records()).toHaveLength(1);
});

test("a tool that needs a router is recorded as failed", async () => {
  await adapter.refusal("anvil_create_routed_flock_members", { ...TENANT, task: "t", roles: ["r"] });
  expect(records()).toEqual([
    {
      ...TENANT,
      tool_name: "anvil_create_routed_flock_members",
      daemon_operation: "POST /vms routed flock members",
      result_code: "error",
      error: "routed flock members create is disabled",
    },
  ]);
});

test("a failure is recorded without the daemon's body and without anything that may be a secret", async () => {
  adapter.daemon.answer = () => new Response(`{"agent_token":"${AGENT_TOKEN}","x":"body"}`, { status: 500 });
  await adapter.refusal("anvil_stop_vm", { ...TENANT, vm_id: "vm-1" });
  expect(records()[0]).toMatchObject({ result_code: "error", error: "daemon returned status 500" });
});

test("a failed undo is recorded without the body of what was done before", async () => {
  await adapter.ok("anvil_spawn_vm", { ...TENANT, session_name: "work" });
  rmSync(adapter.directory.join("sessions.json"));
  mkdirSync(adapter.directory.join("sessions.json"));
  expect(await adapter.refusal("anvil_delete_vm", { ...TENANT, session_name: "work" })).toContain(
    '"stopped"',
  );
  const last = records().at(-1)!;
  expect(last).toMatchObject({ result_code: "error", vm_id: "vm-1", session_alias: "work" });
  expect(last["error"]).toStartWith("save session store ");
  expect(auditText()).not.toContain("stopped");
});

test("a success that cannot be recorded is a failure that says what was done", async () => {
  mkdirSync(adapter.directory.join("audit"));
  symlinkSync("/dev/null", auditPath());
  expect(await adapter.refusal("anvil_spawn_vm", TENANT)).toBe(
    `POST /vms succeeded for VM "vm-1", but could not be recorded: write runtime audit ${JSON.stringify(auditPath())}: it is a symlink`,
  );
});

test.each([
  ["anvil_spawn_flock", { task: "t", roles: ["r"] }, 'POST /flocks succeeded and made flock "flock-1", but '],
  [
    "anvil_create_snapshot",
    { vm_id: "vm-1", stop_after: false },
    'POST /vms/{vm_id}/snapshot succeeded for VM "vm-1" and made snapshot "snap-1", but ',
  ],
])("what %s made is named when it cannot be recorded, and in no record", async (tool, args, text) => {
  await adapter.ok(tool, { ...TENANT, ...args });
  expect(auditText()).not.toMatch(/flock-1|snap-1/);
  rmSync(auditPath());
  symlinkSync("/dev/null", auditPath());
  expect(await adapter.refusal(tool, { ...TENANT, ...args })).toStartWith(`${text}could not be recorded: `);
});

test("a failure that cannot be recorded says both", async () => {
  mkdirSync(adapter.directory.join("audit"));
  mkdirSync(auditPath());
  adapter.daemon.answer = () => new Response("no", { status: 500 });
  expect(await adapter.refusal("anvil_list_flocks", TENANT)).toStartWith(
    "daemon returned status 500: no; failed to append runtime audit: write runtime audit ",
  );
});
