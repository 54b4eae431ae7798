import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf, type NewFlock } from "../../support/fake-flocks.ts";

const vmsOf = (engine: FakeEngine) =>
  readdirSync(engine.engine.parts.paths.vms).filter((name) => name.startsWith("vm-"));
const flocksOf = (engine: FakeEngine) => readdirSync(engine.engine.parts.paths.flocks);

test("POST /flocks answers 201 with a VM for each role, and no answer holds a token", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/flocks", {
    task: "build it",
    roles: [" worker ", "reviewer", "worker"],
    tenant_id: "acme",
    egress_policy: "deny_all",
  });
  expect(made.status).toBe(201);
  const flock = made.json as NewFlock;
  const id = flock.flock_id;
  const agent = (agent_id: string, role: string) => {
    const vm_id = expect.stringMatching(/^vm-\d{19}$/);
    const agent_url = expect.stringMatching(/^http:\/\/127\.0\.0\.1:3000\/vms\/vm-\d{19}$/);
    return { agent_id, role, vm_id, agent_url, status: "ready" };
  };
  const agents = [agent("worker-1", "worker"), agent("reviewer-1", "reviewer"), agent("worker-2", "worker")];
  expect(flock as object).toEqual({
    flock_id: expect.stringMatching(/^flock-\d{19}$/),
    task: "build it",
    tenant_id: "acme",
    egress_policy: "deny_all",
    agents,
    townwall_url: `http://127.0.0.1:3000/flocks/${id}/wall`,
    post_url: `http://127.0.0.1:3000/flocks/${id}/post`,
  });
  const one = await engine.get(`/flocks/${id}`);
  expect(one.json).toEqual({
    flock_id: id,
    task: "build it",
    tenant_id: "acme",
    egress_policy: "deny_all",
    max_agents: 20,
    agents: Object.fromEntries(flock.agents.map((entry) => [entry.agent_id, entry])),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    paused: false,
  });
  const all = await engine.get("/flocks");
  expect(all.json).toEqual([one.json]);
  for (const { text } of [made, one, all]) expect(text).not.toContain("token");
  const vms = (await engine.get("/vms")).json as Record<string, string>[];
  expect(vms.map((vm) => [vm["flock_id"], vm["agent_id"], vm["tenant_id"], vm["egress_policy"]])).toEqual(
    ["worker-1", "reviewer-1", "worker-2"].map((name) => [id, name, "acme", "deny_all"]),
  );
});

test("a member's guest is told its flock and its name", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id, agents } = await flockOf(engine, ["worker"]);
  const path = join(engine.machines.socketDirFor(agents[0]!.vm_id), "root/.ephemera-flock");
  expect(readFileSync(path, "utf8")).toBe(`FLOCK_ID=${flock_id}\nAGENT_ID=worker-1\n`);
});

test("a member has the profile asked for, else the one of its role's name, else the default one", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/flocks", {
    task: "t",
    roles: ["goose", "constructor", "worker", "worker"],
    profiles: ["", "", "claude"],
  });
  const { agents } = made.json as NewFlock;
  expect(agents.map(({ profile }) => profile)).toEqual(["goose", undefined, "claude", undefined]);
  const vms = (await engine.get("/vms")).json as { profile?: string }[];
  expect(vms.map(({ profile }) => profile)).toEqual(["goose", undefined, "claude", undefined]);
});

test.each([
  [{ roles: ["a"] }, "invalid task"],
  [{ task: " \n", roles: ["a"] }, "task must be non-empty"],
  [{ task: "t" }, "invalid roles"],
  [{ task: "t", roles: [] }, "roles must hold 1 to 20 roles"],
  [{ task: "t", roles: Array(21).fill("a") }, "roles must hold 1 to 20 roles"],
  [{ task: "t", roles: "a" }, "invalid roles"],
  [{ task: "t", roles: ["a", "  "] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["a/b"] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["a\\b"] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["."] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: [" .. "] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["a\nb"] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["a".repeat(65)] }, "role must be 1 to 64 characters"],
  [{ task: "t", roles: ["a"], tenant_id: "../x" }, "tenant_id must be at most 64 of"],
  [{ task: "t", roles: ["a"], egress_policy: "open" }, "egress_policy must be empty, deny_all, profile"],
  [{ task: "t", roles: ["a"], profiles: ["nobody"] }, "unknown profile 'nobody'"],
  [{ task: "t", roles: ["a"], profiles: ["", ""] }, "profiles must not be more than roles"],
  [{ task: "t", roles: ["a", "b"], max_agents: 1 }, "roles must not be more than max_agents"],
  [{ task: "t", roles: ["a"], max_agents: 101 }, "invalid max_agents"],
  [[], "invalid request"],
])("POST /flocks refuses %j with 400 before any VM", async (body, text) => {
  await using engine = await FakeEngine.open();
  const { status, json } = await engine.post("/flocks", body);
  expect(status).toBe(400);
  expect((json as { error: string }).error).toContain(text);
  expect([vmsOf(engine), flocksOf(engine)]).toEqual([[], []]);
});

test("POST /flocks refuses what is no JSON, torn, missing, and too large", async () => {
  await using engine = await FakeEngine.open();
  const send = (body: string, type: string) =>
    engine.request("POST", "/flocks", {
      body,
      headers: { "content-type": type, "content-length": String(body.length) },
    });
  expect((await send("task=t", "text/plain")).status).toBe(415);
  expect((await send('{"task":', "application/json")).status).toBe(400);
  expect((await engine.request("POST", "/flocks")).status).toBe(400);
  expect((await send(JSON.stringify({ task: "x".repeat(1_048_576) }), "application/json")).status).toBe(413);
  expect((await engine.get("/flocks")).json).toEqual([]);
});

test("POST /flocks of which one VM cannot be made takes all of them back", async () => {
  await using engine = await FakeEngine.open();
  let starts = 0;
  engine.machines.onStart = () => {
    if (++starts === 3) throw new Error("QEMU did not start");
  };
  const { status, json } = await engine.post("/flocks", { task: "t", roles: ["a", "b", "c", "d"] });
  expect([status, json]).toEqual([500, { error: "agent c-1: the VM could not be made: QEMU did not start" }]);
  expect(starts).toBe(3);
  expect([vmsOf(engine), flocksOf(engine), engine.machines.running.size]).toEqual([[], [], 0]);
  expect([(await engine.get("/flocks")).json, (await engine.get("/vms")).json]).toEqual([[], []]);
});

test("POST /flocks beyond the tenant's quota answers 403 before any VM", async () => {
  await using engine = await FakeEngine.open();
  await engine.engine.parts.tenants.put("acme", {
    active_vms: 2,
    snapshot_count: 0,
    snapshot_bytes: 0,
    concurrent_tasks: 0,
    retained_audit_records: 0,
  });
  const { status, json } = await engine.post("/flocks", {
    task: "t",
    roles: ["a", "b", "c"],
    tenant_id: "acme",
  });
  expect([status, json]).toEqual([
    403,
    { error: "quota_exceeded", resource: "active_vms", limit: 2, used: 0, requested: 3 },
  ]);
  expect([vmsOf(engine), flocksOf(engine)]).toEqual([[], []]);
});

test("POST /flocks answers 507 when the disk would be nearly full, and leaves nothing", async () => {
  await using engine = await FakeEngine.open({ IGN_ENGINE_DISK_FLOOR_MIB: "1073741824" });
  expect((await engine.post("/flocks", { task: "t", roles: ["a"] })).status).toBe(507);
  expect(flocksOf(engine)).toEqual([]);
});

test("a client that goes while a flock is made leaves nothing", async () => {
  await using engine = await FakeEngine.open();
  const { promise, resolve } = Promise.withResolvers<void>();
  let starts = 0;
  engine.machines.onStart = () => {
    if (++starts === 2) engine.machines.gate = promise;
  };
  const client = new AbortController();
  const body = JSON.stringify({ task: "t", roles: ["a", "b", "c"] });
  const asked = engine.request("POST", "/flocks", {
    body,
    headers: { "content-type": "application/json", "content-length": String(body.length) },
    signal: client.signal,
  });
  asked.catch(() => undefined);
  await eventually("the second VM", () => starts === 2);
  expect((await engine.get("/flocks")).json).toEqual([]);
  client.abort();
  resolve();
  await eventually("the end of all", () => vmsOf(engine).length === 0 && flocksOf(engine).length === 0);
  expect(starts).toBe(2);
  expect(engine.machines.running.size).toBe(0);
});
