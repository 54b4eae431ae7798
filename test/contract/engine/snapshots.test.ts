import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { VmError } from "../../../src/vm/vm-error.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const NONE = "snap-1";

async function snapshotOf(engine: FakeEngine, vmId: string, request: object = {}): Promise<string> {
  const { status, text, json } = await engine.post(`/vms/${vmId}/snapshot`, request);
  if (status !== 201) throw new Error(`no snapshot: ${status} ${text}`);
  return (json as { snapshot_id: string }).snapshot_id;
}

test("POST /vms/{id}/snapshot answers 201 with the snapshot, full first and then a diff of it", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm({ tenant_id: "acme", egress_policy: "deny_all", profile: "shell" });
  const full = await engine.post(`/vms/${vmId}/snapshot`, { stop_after: false, type: "" });
  expect(full.status).toBe(201);
  const { snapshot_id, ...rest } = full.json as Record<string, unknown>;
  expect(snapshot_id).toMatch(/^snap-\d{19}$/);
  const fields = {
    source_vm_id: vmId,
    tenant_id: "acme",
    profile: "shell",
    egress_policy: "deny_all",
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
  };
  expect(rest).toEqual({ ...fields, snapshot_type: "full" });
  const diff = await engine.post(`/vms/${vmId}/snapshot`);
  expect(diff.json).toMatchObject({ ...fields, snapshot_type: "diff", base_snapshot_id: snapshot_id });
  expect((await engine.get("/snapshots")).json).toEqual([full.json, diff.json]);
  expect((await engine.get("/health")).json).toMatchObject({ snapshot_count: 2 });
});

test("POST /vms/{id}/snapshot takes no body, null, and a kind in any case", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  expect((await engine.request("POST", `/vms/${vmId}/snapshot`)).status).toBe(201);
  const nulls = { stop_after: null, type: null, tenant_id: null };
  expect((await engine.post(`/vms/${vmId}/snapshot`, nulls)).status).toBe(201);
  expect((await engine.post(`/vms/${vmId}/snapshot`, { type: "FULL" })).json).toMatchObject({
    snapshot_type: "full",
  });
});

test("POST /vms/{id}/snapshot with stop_after ends the VM when the snapshot is there", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  await snapshotOf(engine, vmId, { stop_after: true });
  expect((await engine.get("/vms")).json).toEqual([]);
  expect((await engine.get("/snapshots")).json).toHaveLength(1);
});

test.each([
  [{ type: "diff" }, 400, "diff snapshot requires a full snapshot of this VM; take a full one first"],
  [{ type: "half" }, 400, "type must be empty, full, or diff"],
  [{ stop_after: "yes" }, 400, "invalid stop_after"],
  [{ tenant_id: "../x" }, 400, "tenant_id must be at most 64 of"],
  [{ tenant_id: "other" }, 403, "tenant_id does not match VM tenant"],
])("POST /vms/{id}/snapshot refuses %j with %d", async (body, status, error) => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm({ tenant_id: "acme" });
  const refused = await engine.post(`/vms/${vmId}/snapshot`, body);
  expect(refused.status).toBe(status);
  expect(refused.json).toEqual({ error: expect.stringContaining(error) });
  expect((await engine.get("/snapshots")).json).toEqual([]);
});

test("POST /vms/{id}/snapshot answers 404, 409 of a paused VM, 500, and 507 with their reasons", async () => {
  await using engine = await FakeEngine.open();
  expect(await engine.post("/vms/vm-1/snapshot")).toMatchObject({
    status: 404,
    json: { error: "vm not found" },
  });
  const vmId = await engine.vm();
  const vm = engine.engine.parts.vms.get(vmId);
  await vm.pause();
  expect(await engine.post(`/vms/${vmId}/snapshot`)).toMatchObject({ status: 409 });
  await vm.resume();
  const { memory } = engine.machines.of(vmId);
  memory.failure = new VmError("vmm_failed", "QEMU refused stop");
  expect(await engine.post(`/vms/${vmId}/snapshot`)).toMatchObject({
    status: 500,
    json: { error: "snapshot failed: QEMU refused stop" },
  });
  memory.failure = Object.assign(new Error("no space left"), { code: "ENOSPC" });
  expect(await engine.post(`/vms/${vmId}/snapshot`)).toMatchObject({ status: 507 });
  expect(readdirSync(engine.directory.join("engine", "snapshots"))).toEqual([]);
});

test("POST /vms/{id}/snapshot below the floor of the disk answers 507", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  engine.env["IGN_ENGINE_DISK_FLOOR_MIB"] = "1000000000";
  await engine.restart();
  const refused = await engine.post(`/vms/${vmId}/snapshot`);
  expect(refused.status).toBe(507);
  expect(refused.json).toEqual({ error: expect.stringContaining("insufficient disk space") });
});

test("POST /vms/{id}/snapshot stays within the tenant's quota", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm({ tenant_id: "acme" });
  const quota = { active_vms: 0, snapshot_bytes: 0, concurrent_tasks: 0, retained_audit_records: 0 };
  await engine.engine.parts.tenants.put("acme", { ...quota, snapshot_count: 1 });
  await snapshotOf(engine, vmId);
  expect(await engine.post(`/vms/${vmId}/snapshot`)).toMatchObject({
    status: 403,
    json: { error: "quota_exceeded", resource: "snapshot_count", limit: 1, used: 1, requested: 1 },
  });
});

test("DELETE /snapshots/{id} answers 200, 404 for an unknown one, and 409 while something stands on it", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  const full = await snapshotOf(engine, vmId);
  const diff = await snapshotOf(engine, vmId);
  const remove = (id: string) => engine.request("DELETE", `/snapshots/${id}`);
  for (const id of [NONE, "..%2f..", "x".repeat(100)])
    expect(await remove(id)).toMatchObject({ status: 404, json: { error: "snapshot not found" } });
  expect(await remove(full)).toMatchObject({
    status: 409,
    json: { error: `snapshot is referenced by diff snapshot ${diff}` },
  });
  const restored = (await engine.post(`/snapshots/${diff}/restore`)).json as { vm_id: string };
  const inUse = { status: 409, json: { error: `snapshot is in use by restored VM ${restored.vm_id}` } };
  expect(await remove(diff)).toMatchObject(inUse);
  await engine.restart();
  expect(await remove(diff)).toMatchObject(inUse);
  await engine.request("DELETE", `/vms/${restored.vm_id}`);
  expect(await remove(diff)).toMatchObject({ status: 200, json: { status: "deleted", snapshot_id: diff } });
  expect((await remove(full)).status).toBe(200);
  expect((await engine.get("/snapshots")).json).toEqual([]);
});

test("POST /snapshots/gc tells what would go, and with apply deletes it and records that", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await snapshotOf(engine, vmId, { type: "full" }));
  const diff = await snapshotOf(engine, vmId, { type: "diff" });
  const told = await engine.post("/snapshots/gc", { keep_last_per_vm: 1 });
  expect(told.status).toBe(200);
  const candidate = (id: string) => ({
    snapshot_id: id,
    source_vm_id: vmId,
    snapshot_type: "full",
    created_at: expect.any(String),
    size_bytes: expect.any(Number),
    reasons: ["keep_last_per_vm"],
  });
  const report = {
    applied: false,
    requested_at: expect.stringMatching(/Z$/),
    policy: { older_than_seconds: 0, keep_last_per_vm: 1, max_total_bytes: 0 },
    candidates: [candidate(ids[0]!), candidate(ids[1]!)],
    protected: [{ ...candidate(ids[2]!), reasons: ["keep_last_per_vm", "referenced_by_diff"] }],
    deleted: [],
    errors: [],
  };
  expect(told.json).toEqual(report);
  expect((await engine.get("/snapshots")).json).toHaveLength(4);
  const applied = await engine.post("/snapshots/gc", { keep_last_per_vm: 1, apply: true });
  expect(applied.json).toEqual({ ...report, applied: true, deleted: ids.slice(0, 2) });
  const left = (await engine.get("/snapshots")).json as { snapshot_id: string }[];
  expect(left.map((each) => each.snapshot_id)).toEqual([ids[2]!, diff]);
  const audit = readFileSync(engine.directory.join("engine", "snapshots", "gc-audit.jsonl"), "utf8");
  expect(
    audit
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([applied.json]);
});

test.each([
  [{ keep_last_per_vm: -1 }, "keep_last_per_vm"],
  [{ older_than_seconds: 1.5 }, "older_than_seconds"],
  [{ max_total_bytes: "1" }, "max_total_bytes"],
  [{ apply: "yes" }, "apply"],
])("POST /snapshots/gc refuses %j with 400", async (body, field) => {
  await using engine = await FakeEngine.open();
  await snapshotOf(engine, await engine.vm());
  const refused = await engine.post("/snapshots/gc", {
    ...body,
  });
  expect(refused.status).toBe(400);
  expect((refused.json as { error: string }).error).toContain(field);
});

test.each([
  ["GET", "/snapshots/gc", "POST"],
  ["DELETE", "/snapshots/import", "POST"],
  ["PUT", "/snapshots/snap-1", "DELETE"],
  ["GET", "/snapshots/snap-1/restore", "POST"],
  ["GET", "/snapshots/snap-1/export", "POST"],
  ["PUT", "/snapshots", "GET"],
  ["GET", "/vms/vm-1/snapshot", "POST"],
])("%s %s answers 405 and which methods there are", async (method, path, allow) => {
  await using engine = await FakeEngine.open();
  const { status, headers } = await engine.request(method, path);
  expect(status).toBe(405);
  expect(headers.get("allow")).toBe(allow);
});

test("what was done to snapshots is in the runtime audit, with the tenant it was done to", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm({ tenant_id: "acme" });
  const id = await snapshotOf(engine, vmId);
  await engine.post(`/snapshots/${id}/restore`, { tenant_id: "other" });
  await engine.request("DELETE", `/snapshots/${id}`);
  const text = readFileSync(join(engine.directory.join("engine"), "audit", "runtime-audit.jsonl"), "utf8");
  const records = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(
    records.map(({ tenant_id, daemon_operation, result_code }) => [tenant_id, daemon_operation, result_code]),
  ).toEqual([
    ["acme", "POST /vms", "success"],
    ["acme", "POST /vms/{vm_id}/snapshot", "success"],
    ["acme", "POST /snapshots/{snapshot_id}/restore", "error"],
    ["acme", "DELETE /snapshots/{snapshot_id}", "success"],
  ]);
});
