import { expect, test } from "bun:test";
import { readdirSync, renameSync } from "node:fs";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf } from "../../support/fake-flocks.ts";
import { startHostRun } from "../../support/host-run.ts";

type Agents = Record<string, { role: string; profile?: string; vm_id: string; status: string }>;

async function agentsOf(engine: FakeEngine, id: string): Promise<Agents> {
  return ((await engine.get(`/flocks/${id}`)).json as { agents: Agents }).agents;
}

test("POST agents adds one under a name that was never given out", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["worker", "worker"]);
  expect((await engine.request("DELETE", `/flocks/${id}/agents/worker-2`)).json).toEqual({
    flock_id: id,
    agent_id: "worker-2",
    status: "removed",
  });
  await engine.restart();
  const added = await engine.post(`/flocks/${id}/agents`, { role: "worker", profile: "claude" });
  expect(added.status).toBe(201);
  const { vm_id } = added.json as { vm_id: string };
  expect(added.json).toEqual({
    agent_id: "worker-3",
    role: "worker",
    vm_id,
    agent_url: `http://127.0.0.1:3000/vms/${vm_id}`,
  });
  const agents = await agentsOf(engine, id);
  expect(Object.keys(agents)).toEqual(["worker-1", "worker-3"]);
  expect(agents["worker-3"]).toMatchObject({ profile: "claude", vm_id, status: "ready" });
  expect(readdirSync(engine.engine.parts.paths.vms)).toHaveLength(2);
});

test("POST agents refuses what is no role with 400, an unknown profile too", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const bodies = [
    {},
    { role: "" },
    { role: "a/b" },
    { role: ".." },
    { role: 5 },
    { role: "b", profile: "nobody" },
  ];
  for (const body of bodies) expect((await engine.post(`/flocks/${id}/agents`, body)).status).toBe(400);
  expect((await engine.request("POST", `/flocks/${id}/agents`)).status).toBe(400);
  expect(Object.keys(await agentsOf(engine, id))).toEqual(["a-1"]);
});

test("POST agents beyond max_agents answers 409, also when two come at once", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/flocks", { task: "t", roles: ["a"], max_agents: 2 });
  const { flock_id: id } = made.json as { flock_id: string };
  const answers = await Promise.all([1, 2].map(() => engine.post(`/flocks/${id}/agents`, { role: "b" })));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  expect(answers.find(({ status }) => status === 409)!.json).toEqual({
    error: "the flock has 2 agents, which is its max_agents",
  });
  expect(readdirSync(engine.engine.parts.paths.vms)).toHaveLength(2);
});

test("an agent that cannot be added leaves the flock as it was", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  engine.machines.failure = new Error("QEMU did not start");
  expect((await engine.post(`/flocks/${id}/agents`, { role: "b" })).status).toBe(500);
  expect(Object.keys(await agentsOf(engine, id))).toEqual(["a-1"]);
  expect(readdirSync(engine.engine.parts.paths.vms)).toHaveLength(1);
});

test("PATCH gives an agent another role and a new VM, under its name", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["worker"]);
  const before = agents[0]!.vm_id;
  const { status, json, text } = await engine.send("PATCH", `/flocks/${id}/agents/worker-1`, {
    role: "goose",
  });
  const { vm_id } = json as { vm_id: string };
  expect([status, vm_id === before]).toEqual([200, false]);
  expect(json).toMatchObject({
    vm_id,
    profile: "goose",
    flock_id: id,
    agent_id: "worker-1",
    status: "running",
  });
  expect(text).not.toContain("token");
  expect(await agentsOf(engine, id)).toMatchObject({
    "worker-1": { role: "goose", profile: "goose", vm_id },
  });
  expect(readdirSync(engine.engine.parts.paths.vms)).toEqual([vm_id]);
});

test("restart gives an agent a new VM with the same role, also when the old one is gone", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["worker"]);
  await engine.request("DELETE", `/vms/${agents[0]!.vm_id}`);
  expect(await agentsOf(engine, id)).toMatchObject({ "worker-1": { status: "dead" } });
  const { status, json } = await engine.post(`/flocks/${id}/agents/worker-1/restart`);
  expect(status).toBe(200);
  const { vm_id } = json as { vm_id: string };
  expect(await agentsOf(engine, id)).toMatchObject({
    "worker-1": { role: "worker", vm_id, status: "ready" },
  });
  expect(readdirSync(engine.engine.parts.paths.vms)).toEqual([vm_id]);
});

test("while its VM is made anew an agent is spawning, and dead when that fails", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["worker"]);
  const { promise, resolve } = Promise.withResolvers<void>();
  engine.machines.gate = promise;
  engine.machines.failure = new Error("QEMU did not start");
  const restarting = engine.post(`/flocks/${id}/agents/worker-1/restart`);
  const status = async () => (await agentsOf(engine, id))["worker-1"]?.status;
  await eventually("it is spawning", async () => (await status()) === "spawning");
  resolve();
  expect((await restarting).status).toBe(500);
  expect(await agentsOf(engine, id)).toMatchObject({ "worker-1": { status: "dead" } });
  expect((await engine.post(`/flocks/${id}/agents/worker-1/restart`)).status).toBe(200);
  expect(await agentsOf(engine, id)).toMatchObject({ "worker-1": { status: "ready" } });
});

test("an unknown agent answers 404", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  for (const agent of ["a-2", "toString", "%2e%2e-1", "__proto__"]) {
    const path = `/flocks/${id}/agents/${agent}`;
    const answers = [
      await engine.request("DELETE", path),
      await engine.send("PATCH", path, { role: "b" }),
      await engine.post(`${path}/restart`),
    ];
    for (const { status, json } of answers)
      expect([status, json]).toEqual([404, { error: "agent not found" }]);
  }
});

test("names of agents that are not letters work in paths", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["señor 100%", "__proto__"]);
  expect(Object.keys(await agentsOf(engine, id))).toEqual(["señor 100%-1", "__proto__-1"]);
  for (const agent of ["señor 100%-1", "__proto__-1"]) {
    const posted = await engine.post(`/flocks/${id}/post`, { agent_id: agent, body: "hola" });
    expect(posted.status).toBe(200);
    const removed = await engine.request("DELETE", `/flocks/${id}/agents/${encodeURIComponent(agent)}`);
    expect(removed.json).toMatchObject({ agent_id: agent, status: "removed" });
  }
  expect(await agentsOf(engine, id)).toEqual({});
});

test("broadcast gives each agent the prompt and says what each made of it", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b", "c", "d"]);
  const { vms, tasks } = engine.engine.parts;
  const stop = new AbortController();
  const task = tasks.run(vms.get(agents[1]!.vm_id), { prompt: "sleep 60", signal: stop.signal });
  task.catch(() => undefined);
  await engine.request("DELETE", `/vms/${agents[2]!.vm_id}`);
  await vms.get(agents[3]!.vm_id).pause();
  const { status, json } = await engine.post(`/flocks/${id}/broadcast`, { body: "echo out; false" });
  expect(status).toBe(200);
  expect(json).toEqual({
    flock_id: id,
    agents: 4,
    sent: 0,
    skipped: 1,
    failed: 3,
    results: {
      "a-1": { status: "error", output: "out\n", error: "exit status 1" },
      "b-1": { status: "busy" },
      "c-1": { status: "error", error: "vm not found" },
      "d-1": { status: "error", error: "vm is paused" },
    },
  });
  stop.abort();
  await task.catch(() => undefined);
  await vms.get(agents[3]!.vm_id).resume();
  const again = await engine.post(`/flocks/${id}/broadcast`, { body: "echo done" });
  expect(again.json).toMatchObject({
    sent: 3,
    failed: 1,
    results: { "a-1": { status: "ok", output: "done\n" }, "b-1": { status: "ok" }, "d-1": { status: "ok" } },
  });
});

test("broadcast tells what each agent made of it, also when the engine fails at one of them", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
  const dir = engine.engine.parts.vms.get(agents[0]!.vm_id).dir;
  renameSync(dir, `${dir}.away`);
  const { status, json } = await engine.post(`/flocks/${id}/broadcast`, { body: "echo done" });
  const failed = { status: "error", error: expect.stringContaining("ENOENT") };
  expect(status).toBe(200);
  expect(json).toMatchObject({
    sent: 1,
    failed: 1,
    results: { "a-1": failed, "b-1": { status: "ok", output: "done\n" } },
  });
  await engine.request("DELETE", `/vms/${agents[1]!.vm_id}`);
  expect((await engine.post(`/flocks/${id}/broadcast`, { body: "echo done" })).json).toMatchObject({
    failed: 2,
  });
  renameSync(`${dir}.away`, dir);
  const records = await engine.engine.parts.audit.read(undefined, 0);
  const broadcasts = records.filter(({ daemon_operation }) => `${daemon_operation}`.endsWith("/broadcast"));
  expect(broadcasts.map(({ result_code }) => result_code)).toEqual(["success", "error"]);
});

test("broadcast runs eight tasks at a time", async () => {
  let running = 0;
  let most = 0;
  const eight = Promise.withResolvers<void>();
  await using engine = await FakeEngine.open({}, (run, hostPath, signal) => {
    const handle = startHostRun(run, hostPath, signal);
    if (run.stdin === null) return handle;
    most = Math.max(most, ++running);
    if (running === 8) eight.resolve();
    const ended = Promise.all([handle.ended, eight.promise]).then(([end]) => end);
    return { ...handle, ended: ended.finally(() => running--) };
  });
  const { flock_id: id } = await flockOf(engine, Array(20).fill("w"));
  const { json } = await engine.post(`/flocks/${id}/broadcast`, { body: "echo hi" });
  expect(json).toMatchObject({ agents: 20, sent: 20, skipped: 0, failed: 0 });
  expect(most).toBe(8);
});

test("broadcast refuses an empty body, and stops at the depth limit", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  for (const body of [{}, { body: "" }, { body: " \n" }, { body: 1 }])
    expect((await engine.post(`/flocks/${id}/broadcast`, body)).status).toBe(400);
  const text = JSON.stringify({ body: "echo hi" });
  const at = (depth: string) =>
    engine.request("POST", `/flocks/${id}/broadcast`, {
      body: text,
      headers: {
        "content-type": "application/json",
        "content-length": `${text.length}`,
        "x-ephemera-task-depth": depth,
      },
    });
  for (const depth of ["-1", "-Infinity", "0x1", "1.5", ""])
    expect([depth, (await at(depth)).status]).toEqual([depth, 400]);
  expect((await at("5")).json).toMatchObject({
    failed: 1,
    results: { "a-1": { status: "error", error: "task depth limit reached (5)" } },
  });
});
