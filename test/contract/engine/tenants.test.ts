import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { FakeEngine } from "../../support/fake-engine.ts";

const UNLIMITED = {
  active_vms: 0,
  snapshot_count: 0,
  snapshot_bytes: 0,
  concurrent_tasks: 0,
  retained_audit_records: 0,
};

test("a tenant has a quota once it is put, and its use of it is counted", async () => {
  await using engine = await FakeEngine.open();
  expect((await engine.get("/tenants")).json).toEqual([]);
  const missing = await engine.get("/tenants/acme");
  expect([missing.status, missing.json]).toEqual([404, { error: "tenant not found" }]);
  const record = { tenant_id: "acme", quota: { ...UNLIMITED, active_vms: 2 }, usage: UNLIMITED };
  const put = await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 2 } });
  expect([put.status, put.json]).toEqual([200, record]);
  await engine.vm({ tenant_id: "acme" });
  await engine.vm({ tenant_id: "other" });
  await engine.restart();
  const used = { ...record, usage: { ...UNLIMITED, active_vms: 1, retained_audit_records: 2 } };
  expect((await engine.get("/tenants/acme")).json).toEqual(used);
  expect((await engine.get("/tenants")).json).toEqual([used]);
});

test.each([
  ["/tenants/acme", { quota: { active_vms: -1 } }],
  ["/tenants/acme", { quota: { active_vms: 1.5 } }],
  ["/tenants/acme", {}],
  ["/tenants/.acme", { quota: {} }],
])("PUT %s with %j answers 400", async (path, body) => {
  await using engine = await FakeEngine.open();
  expect((await engine.send("PUT", path, body)).status).toBe(400);
});

test("no more VMs than the quota, however many are asked for at once, and stopped ones do not count", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 2 } });
  const answers = await Promise.all([1, 2, 3, 4].map(() => engine.post("/vms", { tenant_id: "acme" })));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 403, 403]);
  expect(answers.find(({ status }) => status === 403)?.json).toEqual({
    error: "quota_exceeded",
    resource: "active_vms",
    limit: 2,
    used: 2,
    requested: 1,
  });
  expect((await engine.post("/vms", { tenant_id: "other" })).status).toBe(201);
  expect((await engine.post("/vms")).status).toBe(201);
  const [{ vm_id: id }] = (await engine.get("/vms")).json as [{ vm_id: string }];
  await engine.request("POST", `/vms/${id}/stop`);
  expect((await engine.post("/vms", { tenant_id: "acme" })).status).toBe(201);
});

test("no more tasks at once than the quota", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { concurrent_tasks: 1 } });
  const [first, second] = [await engine.vm({ tenant_id: "acme" }), await engine.vm({ tenant_id: "acme" })];
  const running = engine.post(`/vms/${first}/tasks`, { prompt: "until [ -e go ]; do sleep 0.01; done" });
  while (!engine.engine.parts.tasks.isBusy(first)) await Bun.sleep(1);
  const refused = await engine.post(`/vms/${second}/tasks`, { prompt: "true" });
  expect([refused.status, refused.json]).toMatchObject([
    403,
    { error: "quota_exceeded", resource: "concurrent_tasks" },
  ]);
  await engine.request("PUT", `/vms/${first}/workspace?path=go`, { body: "" });
  expect((await running).status).toBe(200);
  expect((await engine.post(`/vms/${second}/tasks`, { prompt: "true" })).status).toBe(200);
});

test("a quota that cannot be written does not hold", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 5 } });
  const { tenants: path } = engine.engine.parts.paths;
  rmSync(path);
  mkdirSync(path);
  expect((await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 1 } })).status).toBe(500);
  expect((await engine.get("/tenants/acme")).json).toMatchObject({ quota: { active_vms: 5 } });
  rmdirSync(path);
  expect((await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 2 } })).status).toBe(200);
  await engine.restart();
  expect((await engine.get("/tenants/acme")).json).toMatchObject({ quota: { active_vms: 2 } });
});

test("a tenants.json torn at any byte is set aside and told, and the engine goes on without quotas", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 5 } });
  const { tenants: path } = engine.engine.parts.paths;
  const whole = readFileSync(path);
  for (let bytes = 0; bytes < whole.byteLength - 1; bytes += 29) {
    writeFileSync(path, whole.subarray(0, bytes));
    await engine.restart();
    expect((await engine.get("/tenants")).json).toEqual([]);
    expect(engine.logged.at(-1)?.message).toBe("a file is damaged; it was set aside as .damaged");
    expect(readFileSync(`${path}.damaged`)).toEqual(whole.subarray(0, bytes));
  }
  writeFileSync(path, whole);
  await engine.restart();
  expect((await engine.get("/tenants/acme")).json).toMatchObject({ quota: { active_vms: 5 } });
});
