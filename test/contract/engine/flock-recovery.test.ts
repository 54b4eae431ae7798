import { expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf } from "../../support/fake-flocks.ts";

const vmsOf = (engine: FakeEngine) =>
  readdirSync(engine.engine.parts.paths.vms).filter((name) => name.startsWith("vm-"));
const flocksOf = (engine: FakeEngine) => readdirSync(engine.engine.parts.paths.flocks);
const metadataOf = (engine: FakeEngine, id: string) =>
  join(engine.engine.parts.paths.flocks, id, "metadata.json");
const warnings = (engine: FakeEngine) =>
  engine.logged.filter(({ level }) => level === "warn").map(({ message }) => message);

/** Machines that start from now on never come up, until the next engine. Resolves when one has begun to start. */
function blockStarts(engine: FakeEngine): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  engine.machines.gate = new Promise(() => undefined);
  engine.machines.onStart = resolve;
  return promise;
}

async function crash(engine: FakeEngine): Promise<void> {
  engine.machines.gate = Promise.resolve();
  await engine.crash();
}

/** Changes a flock's record on disk, as an engine that was killed right after would have left it. */
function rewrite(engine: FakeEngine, id: string, change: object): void {
  const path = metadataOf(engine, id);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
}

test.each(["restart", "crash"] as const)(
  "after a %s flocks, members, walls and pauses are as they were",
  async (way) => {
    await using engine = await FakeEngine.open();
    const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
    await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "before" });
    const { flock_id: paused } = await flockOf(engine, ["c"]);
    await engine.post(`/flocks/${paused}/pause`);
    const before = (await engine.get("/flocks")).json;
    await engine[way]();
    expect((await engine.get("/flocks")).json).toEqual(before);
    expect((await engine.get(`/flocks/${id}/wall/history`)).json).toMatchObject([{ seq: 1, body: "before" }]);
    const after = await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "after" });
    expect(after.json).toMatchObject({ seq: 2 });
    expect((await engine.post(`/flocks/${paused}/resume`)).json).toMatchObject({ agents: 1 });
    expect(engine.machines.of(agents[0]!.vm_id).isPaused).toBe(false);
    expect(warnings(engine)).toEqual([]);
  },
);

test("an engine killed while a flock is made leaves nothing of it", async () => {
  await using engine = await FakeEngine.open();
  const kept = await engine.vm();
  let starts = 0;
  engine.machines.onStart = () => {
    if (++starts === 3) void blockStarts(engine);
  };
  engine.post("/flocks", { task: "t", roles: ["a", "b", "c", "d"] }).catch(() => undefined);
  await eventually("the third VM", () => starts === 3 && vmsOf(engine).length === 4);
  expect(flocksOf(engine)).toHaveLength(1);
  await crash(engine);
  expect([(await engine.get("/flocks")).json, flocksOf(engine)]).toEqual([[], []]);
  expect([vmsOf(engine), engine.machines.running.size]).toEqual([[kept], 1]);
  expect(warnings(engine)).toContain("a flock that was half made or half removed is gone");
});

test("an engine killed while an agent is added leaves the flock as it was", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a"]);
  const blocked = blockStarts(engine);
  engine.post(`/flocks/${id}/agents`, { role: "b" }).catch(() => undefined);
  await blocked;
  expect(vmsOf(engine)).toHaveLength(2);
  await crash(engine);
  const [flock] = (await engine.get("/flocks")).json as { agents: object }[];
  expect(Object.keys(flock!.agents)).toEqual(["a-1"]);
  expect(vmsOf(engine)).toEqual([agents[0]!.vm_id]);
});

test("an engine killed between a new member's VM and its record ends that VM", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a"]);
  const before = readFileSync(metadataOf(engine, id), "utf8");
  await engine.post(`/flocks/${id}/agents`, { role: "b" });
  writeFileSync(metadataOf(engine, id), before);
  await crash(engine);
  expect(vmsOf(engine)).toEqual([agents[0]!.vm_id]);
  expect(engine.machines.running.size).toBe(1);
  expect(warnings(engine)).toContain("a VM that was made for a flock and is no member was ended");
});

test("an engine killed while an agent is restarted leaves it dead, and it can be restarted", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a"]);
  const blocked = blockStarts(engine);
  engine.post(`/flocks/${id}/agents/a-1/restart`).catch(() => undefined);
  await blocked;
  expect(vmsOf(engine).some((vmId) => vmId !== agents[0]!.vm_id)).toBe(true);
  await crash(engine);
  expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({ agents: { "a-1": { status: "dead" } } });
  expect(vmsOf(engine)).toEqual([]);
  expect((await engine.post(`/flocks/${id}/agents/a-1/restart`)).status).toBe(200);
});

test("an engine killed while a flock is deleted deletes it when it comes back, and keeps the log", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a", "b"]);
  rewrite(engine, id, { state: "deleting" });
  await crash(engine);
  expect([(await engine.get("/flocks")).json, vmsOf(engine), engine.machines.running.size]).toEqual([
    [],
    [],
    0,
  ]);
  expect(readdirSync(join(engine.engine.parts.paths.flocks, id))).toEqual(["townwall.log"]);
});

test("an engine killed while a flock is deleted and its record is gone ends what is left", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const path = metadataOf(engine, id);
  rmSync(path);
  await crash(engine);
  expect([vmsOf(engine), engine.machines.running.size]).toEqual([[], 0]);
});

test.each([true, false])(
  "an engine killed in the middle of a pause or resume (to %p) finishes it",
  async (paused) => {
    await using engine = await FakeEngine.open();
    const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
    if (!paused) await engine.post(`/flocks/${id}/pause`);
    rewrite(engine, id, { paused });
    await crash(engine);
    for (const { vm_id } of agents) expect(engine.machines.of(vm_id).isPaused).toBe(paused);
    expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({
      paused,
      agents: { "a-1": { status: paused ? "paused" : "ready" } },
    });
  },
);

test("a record that is torn at any byte is told and set aside, its VMs live on, and the engine starts", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a"]);
  const path = metadataOf(engine, id);
  const whole = readFileSync(path, "utf8");
  for (let size = 0; size < whole.length - 2; size += 23) {
    writeFileSync(path, whole.slice(0, size));
    for (let starts = 0; starts < 2; starts++) {
      await engine.restart();
      expect((await engine.get("/flocks")).json).toEqual([]);
      expect(vmsOf(engine)).toEqual([agents[0]!.vm_id]);
      expect(existsSync(`${path}.damaged`)).toBe(true);
    }
  }
  expect(engine.logged.filter(({ level }) => level === "error").length).toBeGreaterThan(10);
  writeFileSync(path, whole);
  await engine.restart();
  expect((await engine.get(`/flocks/${id}`)).status).toBe(200);
});

test("a record of another flock, and directories of other names, are no flocks", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const { flocks } = engine.engine.parts.paths;
  for (const name of ["flock-1000000000000000000", "flock-1", "other"]) {
    mkdirSync(join(flocks, name));
    writeFileSync(join(flocks, name, "metadata.json"), readFileSync(metadataOf(engine, id)));
  }
  await engine.restart();
  expect(
    ((await engine.get("/flocks")).json as { flock_id: string }[]).map(({ flock_id }) => flock_id),
  ).toEqual([id]);
});

test("a wall whose last message is torn goes on behind the last whole one", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "told" });
  appendFileSync(join(engine.engine.parts.paths.flocks, id, "townwall.log"), '{"seq":2,"timestamp":"2026-');
  await crash(engine);
  expect(warnings(engine)).toEqual(["the last message of a wall was torn; it was cut off"]);
  const next = await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "next" });
  expect(next.json).toMatchObject({ seq: 2 });
  expect((await engine.get(`/flocks/${id}/wall/history`)).json).toMatchObject([
    { body: "told" },
    { body: "next" },
  ]);
});

test("a wall that cannot be opened keeps neither the engine nor the other flocks down", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: bad } = await flockOf(engine, ["a"]);
  const { flock_id: good } = await flockOf(engine, ["a"]);
  const path = join(engine.engine.parts.paths.flocks, bad, "townwall.log");
  rmSync(path);
  mkdirSync(path);
  await engine.restart();
  expect((await engine.get("/flocks")).json).toMatchObject([{ flock_id: good }]);
  expect(vmsOf(engine)).toHaveLength(2);
});
