import { expect, test } from "bun:test";
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DeadlineError } from "../../../src/base/wait.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const stateOf = (engine: FakeEngine, id: string) => join(engine.engine.parts.paths.vms, id, "state.json");

function changeState(path: string, change: object): void {
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
}

test("VMs go on when the engine ends, and the next one has them with all they are", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm({ tenant_id: "acme", egress_policy: "allow_all", flock_id: "f", agent_id: "a" });
  await engine.request("PUT", `/vms/${id}/workspace?path=kept`, { body: "still here" });
  const before = (await engine.get("/vms")).json;
  const machine = engine.machines.of(id);
  await engine.restart();
  expect(machine.isDetached).toBe(true);
  expect((await engine.get("/vms")).json).toEqual(before);
  expect((await engine.post(`/vms/${id}/tasks`, { prompt: "cat kept" })).json).toEqual({
    output: "still here",
  });
  expect((await engine.post("/vms")).json).toMatchObject({ guest_ip: "10.0.1.3" });
});

test("a paused VM is paused again after a restart", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.engine.parts.vms.get(id).pause();
  await engine.restart();
  expect(engine.machines.of(id).isPaused).toBe(true);
  expect((await engine.get("/vms")).json).toMatchObject([{ status: "paused" }]);
});

test("a VM that did not outlive the engine is dead with its cause, and its remains are cleared", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.engine.close({ endVms: false });
  rmSync(engine.machines.socketDirFor(id), { recursive: true });
  await engine.start();
  expect((await engine.get("/vms")).json).toMatchObject([
    { vm_id: id, status: "dead", cause: "it did not outlive the engine: its process is gone" },
  ]);
  expect(engine.machines.cleared).toEqual([engine.machines.socketDirFor(id)]);
  await engine.restart();
  expect((await engine.get("/vms")).json).toMatchObject([{ vm_id: id, status: "dead" }]);
  expect((await engine.request("DELETE", `/vms/${id}`)).status).toBe(200);
});

test("a VM that is too slow for its adoption is tried again, and what it has is left alone meanwhile", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.request("PUT", `/vms/${id}/workspace?path=kept`, { body: "still here" });
  await engine.engine.close({ endVms: false });
  let tries = 0;
  engine.machines.onAdopt = () => {
    if (++tries === 1) throw new DeadlineError("the agent's answer", 10_000);
  };
  await engine.start();
  expect([tries, engine.machines.cleared]).toEqual([2, []]);
  expect((await engine.get(`/vms/${id}/workspace?path=kept`)).text).toBe("still here");
});

test("no more than eight VMs are adopted at once", async () => {
  await using engine = await FakeEngine.open();
  const ids = await Promise.all(Array.from({ length: 20 }, () => engine.vm()));
  await engine.engine.close({ endVms: false });
  let underWay = 0;
  let most = 0;
  engine.machines.onAdopt = async () => {
    most = Math.max(most, ++underWay);
    await Bun.sleep(1);
    underWay--;
  };
  await engine.start();
  expect(most).toBe(8);
  const listed = (await engine.get("/vms")).json as { vm_id: string; status: string }[];
  expect(listed.filter(({ status }) => status === "running").map(({ vm_id }) => vm_id)).toEqual(ids.sort());
});

test("what is left of a VM that was being deleted goes, without a word", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.engine.close({ endVms: false });
  const { vms } = engine.engine.parts.paths;
  renameSync(join(vms, id), join(vms, `.removing-${id}`));
  rmSync(join(vms, `.removing-${id}`, "state.json"));
  writeFileSync(join(vms, `.removing-${id}`, "vmm.log"), "");
  await engine.start();
  expect(readdirSync(vms)).toEqual([]);
  expect((await engine.get("/vms")).json).toEqual([]);
  expect(engine.logged.filter(({ level }) => level === "error")).toEqual([]);
});

test("an engine that lacks its image does not start while VMs run, and leaves them as they are", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.engine.close({ endVms: false });
  engine.machines.groundFailure = new Error("there is no image");
  await expect(engine.start()).rejects.toThrow("VMs of an earlier engine run and cannot be taken over");
  engine.machines.groundFailure = null;
  await engine.start();
  expect((await engine.get("/vms")).json).toMatchObject([{ vm_id: id, status: "running" }]);
  await engine.request("DELETE", `/vms/${id}`);
  await engine.engine.close({ endVms: false });
  engine.machines.groundFailure = new Error("there is no image");
  await engine.start();
  expect((await engine.get("/vms")).json).toEqual([]);
});

test("a VM that was half made is ended and removed", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await engine.engine.close({ endVms: false });
  changeState(stateOf(engine, id), { state: "creating", machine: null });
  await engine.start();
  expect((await engine.get("/vms")).json).toEqual([]);
  expect(engine.machines.cleared).toEqual([engine.machines.socketDirFor(id)]);
  expect(readdirSync(engine.engine.parts.paths.vms)).toEqual([]);
});

test("a record torn at any byte is set aside, its VM ended, and the others go on", async () => {
  for (let tenth = 0; tenth < 10; tenth++) {
    await using engine = await FakeEngine.open();
    const [id, other] = [await engine.vm(), await engine.vm()];
    await engine.engine.close({ endVms: false });
    const path = stateOf(engine, id);
    truncateSync(path, Math.floor((statSync(path).size * tenth) / 10));
    await engine.start();
    expect((await engine.get("/vms")).json).toMatchObject([{ vm_id: other, status: "running" }]);
    expect(engine.machines.cleared).toEqual([engine.machines.socketDirFor(id)]);
    expect(readdirSync(engine.engine.parts.paths.vms).sort()).toEqual([`${id}.damaged`, other]);
    expect(engine.logged.filter(({ level }) => level === "error")).toHaveLength(2);
  }
});

test("a record of another VM, or of another schema, is set aside too", async () => {
  await using engine = await FakeEngine.open();
  const ids = [await engine.vm(), await engine.vm()];
  await engine.engine.close({ endVms: false });
  changeState(stateOf(engine, ids[0]!), { vm_id: "vm-5" });
  changeState(stateOf(engine, ids[1]!), { schema_version: 2 });
  await engine.start();
  expect((await engine.get("/vms")).json).toEqual([]);
  expect(readdirSync(engine.engine.parts.paths.vms).sort()).toEqual(ids.map((id) => `${id}.damaged`));
});

test("torn tenants are told and set aside; unfinished files of a crash are swept", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 1 } });
  const { tenants, root } = engine.engine.parts.paths;
  await engine.engine.close({ endVms: false });
  const text = readFileSync(tenants, "utf8");
  writeFileSync(tenants, text.slice(0, text.length / 2));
  const unfinished = join(root, `tenants.json.tmp-${crypto.randomUUID()}`);
  writeFileSync(unfinished, "{");
  await engine.start();
  expect((await engine.get("/tenants")).json).toEqual([]);
  expect(existsSync(`${tenants}.damaged`)).toBe(true);
  expect(existsSync(unfinished)).toBe(false);
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 1 } });
  expect(readFileSync(tenants, "utf8")).toBe(text);
});

test("two engines cannot have one work directory", async () => {
  await using engine = await FakeEngine.open();
  const again = engine.start();
  await expect(again).rejects.toThrow(/another engine \(process \d+\) works in /);
});

test("a work directory that cannot be used is told as such", async () => {
  await using engine = await FakeEngine.open();
  const before = engine.env["IGN_ENGINE_DIR"]!;
  engine.env["IGN_ENGINE_DIR"] = join(before, "engine.lock", "below-a-file");
  const opening = engine.start();
  await expect(opening).rejects.toThrow(
    /^the work directory .* cannot be used: .*set IGN_ENGINE_DIR to another/,
  );
});
