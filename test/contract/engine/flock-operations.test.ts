import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf, type NewFlock } from "../../support/fake-flocks.ts";

const vmsOf = (engine: FakeEngine) =>
  readdirSync(engine.engine.parts.paths.vms).filter((name) => name.startsWith("vm-"));

test("GET /flocks/{id} tells which agents are busy, paused, done and dead", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b", "c", "d", "e"]);
  const { vms, tasks } = engine.engine.parts;
  const [a, b, c, d] = agents.map(({ vm_id }) => vm_id) as [string, string, string, string];
  const stop = new AbortController();
  const task = tasks.run(vms.get(a), { prompt: "sleep 60", signal: stop.signal });
  task.catch(() => undefined);
  await vms.get(b).pause();
  await vms.get(c).stop();
  await vms.remove(d);
  const flock = (await engine.get(`/flocks/${id}`)).json as { agents: Record<string, { status: string }> };
  expect(Object.values(flock.agents).map(({ status }) => status)).toEqual([
    "busy",
    "paused",
    "done",
    "dead",
    "ready",
  ]);
  stop.abort();
  await task.catch(() => undefined);
});

test("DELETE /flocks/{id} ends its VMs and nobody else's, and keeps the log of its wall", async () => {
  await using engine = await FakeEngine.open();
  const other = await engine.vm();
  const { flock_id: id } = await flockOf(engine, ["a", "b"]);
  await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "kept" });
  const dir = join(engine.engine.parts.paths.flocks, id);
  expect(readdirSync(dir).sort()).toEqual(["guest-token", "metadata.json", "townwall.log"]);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  const { status, json } = await engine.request("DELETE", `/flocks/${id}`);
  expect([status, json]).toEqual([200, { status: "deleted", flock_id: id }]);
  expect(((await engine.get("/vms")).json as { vm_id: string }[]).map(({ vm_id }) => vm_id)).toEqual([other]);
  expect(readdirSync(dir)).toEqual(["townwall.log"]);
  expect(readFileSync(join(dir, "townwall.log"), "utf8")).toContain("kept");
  for (const path of ["", "/wall", "/wall/history"])
    expect((await engine.get(`/flocks/${id}${path}`)).json).toEqual({ error: "flock not found" });
  await engine.restart();
  expect((await engine.get("/flocks")).json).toEqual([]);
});

test("DELETE /flocks/{id} while an agent is added leaves no VM", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const { promise, resolve } = Promise.withResolvers<void>();
  engine.machines.gate = promise;
  const adding = engine.post(`/flocks/${id}/agents`, { role: "b" });
  await eventually("the second VM", () => vmsOf(engine).length === 2);
  const deleting = engine.request("DELETE", `/flocks/${id}`);
  resolve();
  expect((await deleting).status).toBe(200);
  expect([(await adding).status, (await adding).json]).toEqual([404, { error: "flock not found" }]);
  expect([vmsOf(engine), engine.machines.running.size]).toEqual([[], 0]);
});

test("two DELETE at once both find it gone", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const answers = await Promise.all([
    engine.request("DELETE", `/flocks/${id}`),
    engine.request("DELETE", `/flocks/${id}`),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(existsSync(join(engine.engine.parts.paths.flocks, id, "metadata.json"))).toBe(false);
});

test("pause and resume stop and continue the machines of all agents", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
  const states = () => agents.map(({ vm_id }) => engine.machines.of(vm_id).isPaused);
  for (let twice = 0; twice < 2; twice++) {
    const { status, json } = await engine.post(`/flocks/${id}/pause`);
    expect([status, json]).toEqual([200, { flock_id: id, status: "paused", agents: 2 }]);
    expect(states()).toEqual([true, true]);
  }
  expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({
    paused: true,
    agents: { "a-1": { status: "paused" }, "b-1": { status: "paused" } },
  });
  expect((await engine.post(`/flocks/${id}/agents`, { role: "c" })).json).toEqual({
    error: "flock is paused",
  });
  const restart = await engine.post(`/flocks/${id}/agents/a-1/restart`);
  expect([restart.status, restart.json]).toEqual([409, { error: "flock is paused" }]);
  expect((await engine.post(`/flocks/${id}/resume`)).json).toEqual({
    flock_id: id,
    status: "resumed",
    agents: 2,
  });
  expect(states()).toEqual([false, false]);
  expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({ paused: false });
});

test("a pause of which one machine fails is taken back", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
  const [first, second] = agents.map(({ vm_id }) => engine.machines.of(vm_id));
  second!.pause = () => Promise.reject(new Error("QMP is gone"));
  const { status, json } = await engine.post(`/flocks/${id}/pause`);
  const who = `agent b-1 (VM ${agents[1]!.vm_id})`;
  expect([status, json]).toEqual([502, { error: `${who} could not be paused: QMP is gone` }]);
  expect([first!.isPaused, second!.isPaused]).toEqual([false, false]);
  expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({ paused: false });
});

test("a flock whose VMs cannot be ended is still there, and can be deleted again", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
  const wall = await engine.engine.app.request(`/flocks/${id}/wall`);
  engine.machines.of(agents[1]!.vm_id).endFailure = new Error("QEMU is still there");
  const failed = await engine.request("DELETE", `/flocks/${id}`);
  expect(failed.status).toBe(500);
  expect((failed.json as { error: string }).error).toContain("QEMU is still there; delete it again");
  expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({ agents: { "a-1": { status: "dead" } } });
  expect((await engine.post(`/flocks/${id}/post`, { agent_id: "b-1", body: "still here" })).status).toBe(200);
  expect((await engine.post(`/flocks/${id}/agents/a-1/restart`)).status).toBe(200);
  await engine.restart();
  expect((await engine.get(`/flocks/${id}`)).status).toBe(200);
  expect((await engine.request("DELETE", `/flocks/${id}`)).status).toBe(200);
  expect([vmsOf(engine), engine.machines.running.size]).toEqual([[], 0]);
  await wall.body?.cancel();
});

test("every route of an unknown flock answers 404", async () => {
  await using engine = await FakeEngine.open();
  const routes: [string, string, object?][] = [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/pause"],
    ["POST", "/resume"],
    ["POST", "/broadcast", { body: "x" }],
    ["POST", "/agents", { role: "a" }],
    ["DELETE", "/agents/a-1"],
    ["PATCH", "/agents/a-1", { role: "a" }],
    ["POST", "/agents/a-1/restart"],
    ["POST", "/post", { agent_id: "a-1", body: "x" }],
    ["GET", "/wall"],
    ["GET", "/wall/history"],
  ];
  for (const [method, path, body] of routes) {
    const url = `/flocks/flock-1${path}`;
    const answer = body ? await engine.send(method, url, body) : await engine.request(method, url);
    expect([method, path, answer.status, answer.json]).toEqual([
      method,
      path,
      404,
      { error: "flock not found" },
    ]);
  }
});

test("wrong methods answer 405 and name the right ones", async () => {
  await using engine = await FakeEngine.open();
  const allowed: [string, string, string][] = [
    ["PUT", "/flocks", "GET, POST"],
    ["POST", "/flocks/x", "DELETE, GET"],
    ["GET", "/flocks/x/pause", "POST"],
    ["GET", "/flocks/x/resume", "POST"],
    ["GET", "/flocks/x/broadcast", "POST"],
    ["GET", "/flocks/x/post", "POST"],
    ["POST", "/flocks/x/wall", "GET"],
    ["DELETE", "/flocks/x/wall/history", "GET"],
    ["GET", "/flocks/x/agents", "POST"],
    ["GET", "/flocks/x/agents/a", "DELETE, PATCH"],
    ["GET", "/flocks/x/agents/a/restart", "POST"],
  ];
  for (const [method, path, allow] of allowed) {
    const { status, text, headers } = await engine.request(method, path);
    expect([path, status, text, headers.get("allow")]).toEqual([path, 405, "method not allowed", allow]);
  }
});

test("a VM cannot be made into a flock of this engine by its id", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const { status, json } = await engine.post("/vms", { flock_id: id, agent_id: "a-2" });
  expect(status).toBe(400);
  expect((json as { error: string }).error).toContain("POST /flocks/{id}/agents adds to one");
});

test("what is done to flocks is in the audit", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/flocks", { task: "t", roles: ["a"], tenant_id: "acme" });
  const id = (made.json as NewFlock).flock_id;
  await engine.post(`/flocks/${id}/pause`);
  await engine.post(`/flocks/${id}/agents`, { role: "b" });
  await engine.request("DELETE", `/flocks/${id}`);
  const records = await engine.engine.parts.audit.read("acme", 0);
  expect(records.map((record) => [record["daemon_operation"], record["result_code"]])).toEqual([
    ["POST /flocks", "success"],
    ["POST /flocks/{flock_id}/pause", "success"],
    ["POST /flocks/{flock_id}/agents", "error"],
    ["DELETE /flocks/{flock_id}", "success"],
  ]);
});

test("an engine that ends says so of flocks, and not that there are none", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  await engine.engine.closeStreams();
  for (const path of ["/flocks", `/flocks/${id}`, `/flocks/${id}/wall/history`]) {
    const { status, json } = await engine.get(path);
    expect([path, status, json]).toEqual([path, 503, { error: "the engine is ending" }]);
  }
  expect((await engine.request("DELETE", `/flocks/${id}`)).status).toBe(503);
  await engine.restart();
  expect((await engine.get(`/flocks/${id}`)).status).toBe(200);
});
