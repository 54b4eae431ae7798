import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { AgentError } from "../../../src/guest/agent-error.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

test("a stopped VM stays in the list, answers 502, and can be deleted", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { status, json } = await engine.request("POST", `/vms/${id}/stop`);
  expect([status, json]).toEqual([200, { status: "stopping" }]);
  expect((await engine.get("/vms")).json).toMatchObject([
    { vm_id: id, status: "stopped", cause: "the VM was stopped" },
  ]);
  const unreachable = { error: "agent unreachable: the VM was stopped" };
  const stopAgain = await engine.request("POST", `/vms/${id}/stop`);
  expect([stopAgain.status, stopAgain.json]).toEqual([502, unreachable]);
  for (const path of ["health", "stats"])
    expect((await engine.get(`/vms/${id}/${path}`)).json).toEqual(unreachable);
  expect((await engine.request("DELETE", `/vms/${id}`)).status).toBe(200);
});

test("a VM that dies by itself is told as dead with its cause", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  engine.machines.of(id).die({ kind: "guest_panic" });
  const listed = async () => (await engine.get("/vms")).json as { status: string }[];
  await eventually("its death is noticed", async () => (await listed())[0]?.status === "dead");
  expect((await engine.get("/vms")).json).toMatchObject([
    { vm_id: id, status: "dead", cause: "its guest kernel panicked" },
  ]);
  expect((await engine.get(`/vms/${id}/health`)).status).toBe(502);
});

test("health, stop and stats of an unknown VM answer 404, health of a lost one 502", async () => {
  await using engine = await FakeEngine.open();
  for (const [method, path] of [
    ["GET", "health"],
    ["POST", "stop"],
    ["GET", "stats"],
  ] as const) {
    const { status, json } = await engine.request(method, `/vms/vm-1/${path}`);
    expect([status, json]).toEqual([404, { error: "vm not found" }]);
  }
  const id = await engine.vm();
  engine.machines.of(id).isAnswering = false;
  expect((await engine.get(`/vms/${id}/health`)).status).toBe(502);
});

test("health of a VM whose agent refuses to answer says so", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const refusal = new AgentError("agent_refused", "the agent refused the request: bad_request");
  engine.machines.of(id).ping = () => Promise.reject(refusal);
  const { status, json } = await engine.get(`/vms/${id}/health`);
  expect([status, json]).toEqual([502, { error: `agent unreachable: ${refusal.message}` }]);
});

test("a VM that cannot be removed stays, takes no calls, counts, and can be deleted again", async () => {
  await using engine = await FakeEngine.open({ IGN_ENGINE_MAX_VMS: "1" });
  const id = await engine.vm();
  engine.machines.of(id).endFailure = new Error("QEMU is still there");
  const failed = await engine.request("DELETE", `/vms/${id}`);
  const cause = "it could not be removed: QEMU is still there";
  expect([failed.status, failed.json]).toEqual([
    500,
    { error: `the VM is still there, ${cause}; delete it again` },
  ]);
  expect((await engine.get("/vms")).json).toMatchObject([{ vm_id: id, cause }]);
  expect((await engine.post(`/vms/${id}/tasks`, { prompt: "true" })).json).toEqual({
    error: `agent unreachable: ${cause}`,
  });
  expect((await engine.post("/vms")).status).toBe(503);
  expect((await engine.request("DELETE", `/vms/${id}`)).status).toBe(200);
  expect(engine.machines.cleared).toEqual([engine.machines.socketDirFor(id)]);
  expect(readdirSync(engine.engine.parts.paths.vms)).toEqual([]);
  expect((await engine.post("/vms")).status).toBe(201);
});

test("stats are measured for one VM, in the list, and for all that run", async () => {
  await using engine = await FakeEngine.open();
  const [id, stopped] = [await engine.vm(), await engine.vm()];
  await engine.request("POST", `/vms/${stopped}/stop`);
  const expected = {
    vm_id: id,
    cpu_percent: expect.any(Number),
    mem_used_mib: 64,
    mem_total_mib: 512,
    uptime_seconds: expect.any(Number),
    network_rx_bytes: 0,
    network_tx_bytes: 0,
    agent_busy: false,
  };
  expect((await engine.get(`/vms/${id}/stats`)).json).toEqual(expected);
  expect((await engine.get("/metrics/vms")).json).toEqual([expected]);
  const listed = (await engine.get("/vms?stats=true")).json as object[];
  expect(listed).toMatchObject([{ stats: expected }, { vm_id: stopped }]);
  expect(listed[1]).not.toHaveProperty("stats");
  expect((await engine.get("/vms?stats=perhaps")).status).toBe(400);
});

test("/metrics needs no token unless it is to, and counts VMs, requests and tasks", async () => {
  await using engine = await FakeEngine.open({ ANVIL_API_TOKEN: "t" });
  const headers = { authorization: "Bearer t", "content-type": "application/json" };
  const made = await engine.request("POST", "/vms", { headers });
  const { vm_id: id } = made.json as { vm_id: string };
  const body = JSON.stringify({ prompt: "exit 1" });
  await engine.request("POST", `/vms/${id}/tasks`, {
    body,
    headers: { ...headers, "content-length": String(body.length) },
  });
  const { status, text } = await engine.get("/metrics");
  expect(status).toBe(200);
  expect(text).toContain('ephemera_vms{state="running"} 1');
  expect(text).toContain('ephemera_tasks_total{result="error"} 1');
  expect(text).toContain('ephemera_http_requests_total{method="POST",route="/vms",status="201"} 1');
  expect(text).toContain(`ephemera_vm_memory_bytes{vm_id="${id}"} ${64 * 1_048_576}`);
  expect((await engine.get("/metrics/vms")).status).toBe(401);
  await using strict = await FakeEngine.open({ ANVIL_API_TOKEN: "t", EPHEMERA_METRICS_REQUIRE_AUTH: "1" });
  expect((await strict.get("/metrics")).status).toBe(401);
});
