import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EngineError } from "../../../../src/engine/engine-error.ts";
import type { Capture } from "../../../../src/vm/capture-machine.ts";
import type { FakeMemory } from "../../../support/fake-memory.ts";
import { rejection } from "../../../support/rejection.ts";
import { flipBit } from "../../../support/test-store.ts";
import { AS_IT_WAS, AUTO, DIFF, FakeHost, FOREVER, FULL } from "./fake-host.ts";

const take = (host: FakeHost, request: typeof FULL | typeof DIFF | typeof AUTO = FULL, vm = "vm-1") =>
  host.snapshots.take(vm, request, FOREVER);
const restore = (host: FakeHost, id: string) => host.snapshots.restore(id, AS_IT_WAS, FOREVER);
const remove = (host: FakeHost, id: string) => host.snapshots.delete(id, FOREVER);
const refusal = (promise: Promise<unknown>) => rejection<EngineError>(promise);

/** Lets something happen between a capture and what becomes of it. */
function afterCapture(memory: FakeMemory, happen: (capture: Capture, dir: string) => void): void {
  const captureMachine = memory.captureMachine.bind(memory);
  memory.captureMachine = async (files, signal) => {
    const capture = await captureMachine(files, signal);
    happen(capture, dirname(files.memoryPath));
    return capture;
  };
}

describe("a full snapshot", () => {
  test("is the VM as it was, whatever it does later", async () => {
    using host = await FakeHost.open();
    const memory = host.start("vm-1");
    const before = memory.bytes.slice();
    const taken = await take(host);
    expect(taken).toEqual({
      snapshot_id: expect.stringMatching(/^snap-\d{19}$/),
      source_vm_id: "vm-1",
      profile: "shell",
      snapshot_type: "full",
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    memory.write(9, 99);
    const restored = await restore(host, taken.snapshot_id);
    expect(Buffer.compare(restored.memory, before)).toBe(0);
    expect(restored.state).toBe("state after 4 writes");
    expect(restored.order).toMatchObject({ profile: "shell", agentToken: "secret of the agent" });
  });

  test("is for its owner only, and its record has the documented fields", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const { snapshot_id } = await take(host);
    expect(statSync(host.at()).mode & 0o777).toBe(0o700);
    expect(readdirSync(host.at(snapshot_id)).sort()).toEqual([
      "manifest.json",
      "memory.bin",
      "metadata.json",
      "state.bin",
      "verified.json",
    ]);
    expect(statSync(host.at(snapshot_id, "metadata.json")).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(host.at(snapshot_id, "metadata.json"), "utf8"))).toMatchObject({
      schema_version: 1,
      guest_ip: "10.0.1.2",
      agent_token: "secret of the agent",
      tap_device: "",
      mem_file_path: host.at(snapshot_id, "memory.bin"),
      stat_file_path: host.at(snapshot_id, "state.bin"),
      disk_path: host.rootfs.path,
    });
  });

  test("that fails half way leaves nothing, and the next one works", async () => {
    using host = await FakeHost.open();
    const memory = host.start("vm-1");
    memory.failure = new Error("QEMU refused stop");
    expect((await refusal(take(host))).body).toEqual({ error: "snapshot failed: QEMU refused stop" });
    expect(host.names()).toEqual([]);
    memory.failure = null;
    await take(host);
  });

  test("on a disk that becomes full is a 507 and leaves nothing", async () => {
    using host = await FakeHost.open();
    host.start("vm-1").failure = Object.assign(new Error("no space"), { code: "ENOSPC" });
    expect((await refusal(take(host))).status).toBe(507);
    expect(host.names()).toEqual([]);
  });

  test("that cannot be sealed is a snapshot, and says so", async () => {
    using host = await FakeHost.open();
    afterCapture(host.start("vm-1"), (_, dir) => mkdirSync(join(dir, "verified.json")));
    const { snapshot_id } = await take(host);
    expect(host.warnings).toEqual(["verified.json could not be written"]);
    expect(host.snapshots.list().map((each) => each.snapshot_id)).toEqual([snapshot_id]);
  });

  test("that cannot be read back is gone", async () => {
    using host = await FakeHost.open();
    afterCapture(host.start("vm-1"), ({ files }) => {
      files.memory.bytes += 1;
    });
    expect((await refusal(take(host))).message).toContain("memory.bin has 524288 bytes");
    expect(host.names()).toEqual([]);
    expect(host.snapshots.list()).toEqual([]);
  });

  test("stops its VM when that is wanted, and only then", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    await take(host);
    expect(host.memories.has("vm-1")).toBe(true);
    const { snapshot_id } = await host.snapshots.take("vm-1", { ...FULL, stopAfter: true }, FOREVER);
    expect(host.memories.has("vm-1")).toBe(false);
    await restore(host, snapshot_id);
  });
});

describe("a diff snapshot", () => {
  test("holds what changed since the latest full one, and restores to the whole", async () => {
    using host = await FakeHost.open();
    const memory = host.start("vm-1");
    await take(host);
    memory.write(1, 50);
    const full = await take(host);
    memory.write(0, 60);
    memory.write(77, 61);
    const after = memory.bytes.slice();
    const diff = await take(host, DIFF);
    expect(diff).toMatchObject({ snapshot_type: "diff", base_snapshot_id: full.snapshot_id });
    expect(statSync(host.at(diff.snapshot_id, "memory.bin")).size).toBe(3 * 4096);
    await remove(host, (await host.snapshots.list())[0]!.snapshot_id);
    memory.write(5, 1);
    expect(Buffer.compare((await restore(host, diff.snapshot_id)).memory, after)).toBe(0);
    expect(Buffer.compare((await restore(host, diff.snapshot_id)).memory, after)).toBe(0);
  });

  test("has its whole memory on disk while a VM of it is there, and no longer", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    await take(host);
    const diff = await take(host, DIFF);
    const merged = () => readdirSync(`${host.rootPath}/merged/snapshots`);
    const vms = [await restore(host, diff.snapshot_id), await restore(host, diff.snapshot_id)];
    await host.remove(vms[0]!.vmId);
    await host.restart();
    await take(host);
    expect(merged()).toEqual([diff.snapshot_id]);
    await host.remove(vms[1]!.vmId);
    await take(host);
    expect(merged()).toEqual([]);
  });

  test("is what the kind left open means when there is a full one", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    host.start("vm-2");
    expect((await take(host, AUTO)).snapshot_type).toBe("full");
    expect((await take(host, AUTO)).snapshot_type).toBe("diff");
    expect((await take(host, AUTO)).snapshot_type).toBe("diff");
    expect((await take(host, AUTO, "vm-2")).snapshot_type).toBe("full");
  });

  test("is refused without a full one, and over a damaged one", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    expect(await refusal(take(host, DIFF))).toMatchObject({ status: 400 });
    const { snapshot_id } = await take(host);
    flipBit(host.at(snapshot_id, "memory.bin"), 5000);
    expect((await refusal(take(host, DIFF))).message).toContain("no diff can be taken");
    expect(host.names()).toEqual([snapshot_id]);
  });

  test("keeps its base from being deleted, and a VM keeps its snapshot", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const full = await take(host);
    const diff = await take(host, DIFF);
    expect(await refusal(remove(host, full.snapshot_id))).toMatchObject({
      status: 409,
      body: { error: `snapshot is referenced by diff snapshot ${diff.snapshot_id}` },
    });
    const { vmId } = await restore(host, diff.snapshot_id);
    expect(await refusal(remove(host, diff.snapshot_id))).toMatchObject({
      status: 409,
      body: { error: `snapshot is in use by restored VM ${vmId}` },
    });
    await host.remove(vmId);
    await remove(host, diff.snapshot_id);
    await remove(host, full.snapshot_id);
    expect(host.names()).toEqual([]);
    expect(readdirSync(`${host.rootPath}/merged/snapshots`)).toEqual([]);
  });

  test("whose base is gone is refused", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const full = await take(host);
    const diff = await take(host, DIFF);
    rmSync(host.at(full.snapshot_id), { recursive: true });
    await host.restart();
    expect(await refusal(restore(host, diff.snapshot_id))).toMatchObject({
      status: 409,
      body: { code: "diff_base_missing", source_snapshot_id: diff.snapshot_id },
    });
  });
});

describe("what happens to snapshots", () => {
  test("happens one after another, and a wait that is given up does nothing", async () => {
    using host = await FakeHost.open();
    const memory = host.start("vm-1");
    const gate = Promise.withResolvers<void>();
    memory.gate = gate.promise;
    const first = take(host);
    const givenUp = new AbortController();
    const second = host.snapshots.take("vm-1", FULL, givenUp.signal);
    const third = take(host, AUTO);
    givenUp.abort(new Error("the client left"));
    gate.resolve();
    expect((await refusal(second)).message).toBe("the client left");
    expect(await third).toMatchObject({ base_snapshot_id: (await first).snapshot_id });
    expect(host.names()).toHaveLength(2);
  });

  test("stays within the tenant's quota of number and bytes", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    Object.assign(host.vmFields, { tenantId: "acme" });
    const quota = { active_vms: 0, concurrent_tasks: 0, retained_audit_records: 0, snapshot_bytes: 0 };
    await host.tenants.put("acme", { ...quota, snapshot_count: 1 });
    await take(host);
    expect((await refusal(take(host))).body).toEqual({
      error: "quota_exceeded",
      resource: "snapshot_count",
      limit: 1,
      used: 1,
      requested: 1,
    });
    await host.tenants.put("acme", { ...quota, snapshot_count: 0, snapshot_bytes: 1 });
    expect((await refusal(take(host))).body).toMatchObject({ resource: "snapshot_bytes", limit: 1 });
    expect(host.names()).toHaveLength(1);
    expect(host.tenants.get("acme")?.usage).toMatchObject({ snapshot_count: 1 });
  });

  test("keeps off a disk that has not the room for all that will be written", async () => {
    using host = await FakeHost.open();
    const memory = host.start("vm-1");
    await take(host);
    const diff = await take(host, DIFF);
    host.roomBytes = memory.bytes.byteLength - 1;
    const before = host.names();
    expect((await refusal(take(host))).status).toBe(507);
    host.roomBytes = 1;
    expect(await refusal(restore(host, diff.snapshot_id))).toMatchObject({
      status: 507,
      body: { code: "disk_full", source_snapshot_id: diff.snapshot_id },
    });
    expect(host.names()).toEqual(before);
    expect(readdirSync(`${host.rootPath}/merged/snapshots`)).toEqual([]);
    host.roomBytes = null;
    await restore(host, diff.snapshot_id);
    host.roomBytes = 1;
    await restore(host, diff.snapshot_id);
  });

  test("keeps off a disk that has no room left", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    host.floorBytes = Number.MAX_SAFE_INTEGER;
    await host.restart();
    expect((await refusal(take(host))).status).toBe(507);
    expect(host.names()).toEqual([]);
  });
});
