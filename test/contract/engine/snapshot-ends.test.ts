import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

test("POST /vms/{id}/snapshot with stop_after leaves the VM still, and answers with the snapshot if it cannot be ended", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  const machine = engine.machines.of(vmId);
  machine.endFailure = new Error("QEMU is still there");
  expect((await engine.post(`/vms/${vmId}/snapshot`, { stop_after: true })).status).toBe(201);
  expect(machine.isPaused).toBe(true);
  expect((await engine.get("/vms")).json).toMatchObject([
    { vm_id: vmId, cause: "it could not be removed: QEMU is still there" },
  ]);
  expect(engine.logged.some(({ message }) => message === "a VM was not ended after its snapshot")).toBe(true);
});

test.each([
  ["DELETE", "", 404, "vm not found"],
  ["POST", "/stop", 502, "agent unreachable: the VM was stopped"],
])("%s /vms/{id}%s during its snapshot answers that with %d", async (method, path, status, error) => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  const { promise, resolve } = Promise.withResolvers<void>();
  engine.machines.of(vmId).memory.gate = promise;
  const taking = engine.post(`/vms/${vmId}/snapshot`);
  const dir = engine.directory.join("engine", "snapshots");
  await eventually("the copy", () => readdirSync(dir, { recursive: true }).length > 1);
  expect((await engine.request(method, `/vms/${vmId}${path}`)).status).toBe(200);
  resolve();
  expect(await taking).toMatchObject({ status, json: { error } });
  expect(readdirSync(dir)).toEqual([]);
});

test("POST /vms/{id}/snapshot of a VM that was paused meanwhile answers 409", async () => {
  await using engine = await FakeEngine.open();
  const vmId = await engine.vm();
  engine.machines.of(vmId).isPaused = true;
  expect(await engine.post(`/vms/${vmId}/snapshot`)).toMatchObject({
    status: 409,
    json: { error: expect.stringContaining("the VM is paused") },
  });
});
