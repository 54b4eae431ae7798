import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentError } from "../../../src/guest/agent-error.ts";
import { VmError } from "../../../src/vm/vm-error.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { startHostRun } from "../../support/host-run.ts";

const NONE = "snap-1";

async function snapshotOf(engine: FakeEngine, vmId: string, request: object = {}): Promise<string> {
  const { status, text, json } = await engine.post(`/vms/${vmId}/snapshot`, request);
  if (status !== 201) throw new Error(`no snapshot: ${status} ${text}`);
  return (json as { snapshot_id: string }).snapshot_id;
}

test("POST /snapshots/{id}/restore answers 201 with a new VM, also beside its source, and without a token", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm({ tenant_id: "acme", egress_policy: "deny_all" });
  engine.machines.of(vmId).memory.write(7, 77);
  const id = await snapshotOf(engine, vmId);
  const { status, json, text } = await engine.post(`/snapshots/${id}/restore`, { tenant_id: "acme" });
  expect(status).toBe(201);
  const restored = json as { vm_id: string };
  expect(json).toEqual({
    vm_id: expect.stringMatching(/^vm-\d{19}$/),
    guest_ip: "10.0.1.3",
    agent_url: `http://127.0.0.1:3000/vms/${restored.vm_id}`,
    tenant_id: "acme",
    egress_policy: "deny_all",
    source_snapshot_id: id,
    status: "running",
    created_at: expect.any(String),
  });
  expect(text).not.toContain("token");
  const [source, copy] = [engine.machines.of(vmId), engine.machines.of(restored.vm_id)];
  expect(Buffer.compare(source.memory.bytes, copy.memory.bytes)).toBe(0);
  const records = [vmId, restored.vm_id].map((each) => engine.engine.parts.vms.get(each).record);
  expect(records[0]!.agent_token).toBe(records[1]!.agent_token);
});

test.each([
  [{ tenant_id: "../x" }, 400, "invalid_tenant_id"],
  [{ tenant_id: 5 }, 400, "invalid_tenant_id"],
  [{ egress_policy: "open" }, 400, "invalid_egress_policy"],
  [[], 400, "invalid_restore_request"],
  [{ tenant_id: "other" }, 403, "tenant_mismatch"],
  [{ egress_policy: "allow_all" }, 403, "egress_policy_mismatch"],
])("POST /snapshots/{id}/restore refuses %j with %d and code %s", async (body, status, code) => {
  await using engine = await FakeEngine.open();
  const id = await snapshotOf(engine, await engine.vm({ tenant_id: "acme" }));
  const refused = await engine.post(`/snapshots/${id}/restore`, body);
  expect(refused.status).toBe(status);
  expect(refused.json).toEqual({ error: expect.any(String), code, source_snapshot_id: id });
  expect((await engine.get("/vms")).json).toHaveLength(1);
});

test("POST /snapshots/{id}/restore refuses what is not JSON, and an unknown snapshot", async () => {
  await using engine = await FakeEngine.open();
  const id = await snapshotOf(engine, await engine.vm());
  const torn = { body: "{", headers: { "content-type": "application/json", "content-length": "1" } };
  expect(await engine.request("POST", `/snapshots/${id}/restore`, torn)).toMatchObject({
    status: 400,
    json: { error: "invalid JSON body", code: "invalid_restore_request", source_snapshot_id: id },
  });
  const text = { body: "x", headers: { "content-type": "text/plain", "content-length": "1" } };
  expect((await engine.request("POST", `/snapshots/${id}/restore`, text)).status).toBe(415);
  expect(await engine.post(`/snapshots/${NONE}/restore`)).toMatchObject({
    status: 404,
    json: { error: "snapshot not found", code: "snapshot_not_found", source_snapshot_id: NONE },
  });
});

test("POST /snapshots/{id}/restore that fails says in which step, and leaves no VM", async () => {
  await using engine = await FakeEngine.open();
  const id = await snapshotOf(engine, await engine.vm());
  const lost = new AgentError("agent_lost", "the connection to the agent ended");
  const ended = new VmError("clone_failed", "the clone ended while it woke: QEMU exited", lost);
  /** As whatever a clone failed with is told */
  const cloneFailed = (cause: Error) => new VmError("clone_failed", `'x': ${cause.message}`, cause);
  for (const [failure, code] of [
    [new VmError("clone_failed", "QEMU did not start"), "firecracker_restore_failed"],
    [cloneFailed(new VmError("vmm_failed", "QEMU refused")), "firecracker_restore_failed"],
    [cloneFailed(ended), "firecracker_restore_failed"],
    [cloneFailed(lost), "agent_not_ready"],
  ] as const) {
    engine.machines.failure = failure;
    const refused = await engine.post(`/snapshots/${id}/restore`);
    expect(refused.status).toBe(500);
    expect(refused.json).toMatchObject({ code, source_snapshot_id: id });
    expect((refused.json as { error: string }).error).toContain(failure.message);
  }
  expect((await engine.get("/vms")).json).toHaveLength(1);
});

test("POST /snapshots/{id}/restore whose guest or egress rules cannot be prepared says so, and leaves no VM", async () => {
  let isBroken = false;
  await using engine = await FakeEngine.open({}, (run, hostPath, signal) => {
    const command = isBroken ? new TextEncoder().encode("exit 1") : run.command;
    return startHostRun({ ...run, command }, hostPath, signal);
  });
  const dir = join(engine.env["IGN_ENGINE_PROFILES"]!, "shell");
  const id = await snapshotOf(engine, await engine.vm());
  isBroken = true;
  const unprepared = await engine.post(`/snapshots/${id}/restore`);
  expect([unprepared.status, unprepared.json]).toMatchObject([500, { code: "guest_reconfigure_failed" }]);
  isBroken = false;
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "egress.json"), "{");
  const ruleless = await engine.post(`/snapshots/${id}/restore`);
  expect([ruleless.status, ruleless.json]).toMatchObject([500, { code: "egress_policy_failed" }]);
  expect((await engine.get("/vms")).json).toHaveLength(1);
});

test("POST /snapshots/{id}/restore on a disk that becomes full while it starts QEMU answers 507", async () => {
  await using engine = await FakeEngine.open();
  const id = await snapshotOf(engine, await engine.vm());
  const full = Object.assign(new Error("no space left"), { code: "ENOSPC" });
  engine.machines.failure = new VmError("clone_failed", "'x' could not be restored: no space left", full);
  expect(await engine.post(`/snapshots/${id}/restore`)).toMatchObject({
    status: 507,
    json: { code: "disk_full", source_snapshot_id: id },
  });
});
