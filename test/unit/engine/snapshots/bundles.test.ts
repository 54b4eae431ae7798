import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { EngineError } from "../../../../src/engine/engine-error.ts";
import { type BundleEntry, pack, unpack, withContent, withJson } from "../../../support/bundles.ts";
import { rejection } from "../../../support/rejection.ts";
import { AS_IT_WAS, DIFF, FakeHost, FOREVER, FULL } from "./fake-host.ts";

describe("a bundle", () => {
  let source: FakeHost;
  let target: FakeHost;
  let fullId: string;
  let diffId: string;
  let full: Uint8Array;
  let diff: Uint8Array;
  let entries: BundleEntry[];
  /** The VM's memory at the diff */
  let memory: Uint8Array;

  beforeAll(async () => {
    source = await FakeHost.open();
    target = await FakeHost.open();
    const vm = source.start("vm-1");
    Object.assign(source.vmFields, { tenantId: "acme", egressPolicy: "deny_all" });
    fullId = (await source.snapshots.take("vm-1", FULL, FOREVER)).snapshot_id;
    vm.write(3, 33);
    memory = vm.bytes.slice();
    diffId = (await source.snapshots.take("vm-1", DIFF, FOREVER)).snapshot_id;
    full = await source.bundle(fullId);
    diff = await source.bundle(diffId);
    entries = await unpack(full);
  });
  afterAll(() => {
    source[Symbol.dispose]();
    target[Symbol.dispose]();
  });

  const content = (name: string) => entries.find((entry) => entry.name === name)!.content;
  const replaced = (name: string, change: Partial<BundleEntry>) =>
    entries.map((entry) => (entry.name === name ? { ...entry, ...change } : entry));
  const typed = (type: string) => (header: Buffer) => void header.write(type, 156, "latin1");

  async function expectRefused(bundle: Uint8Array, reason: string, error = "invalid_snapshot_bundle") {
    const refused = await rejection<EngineError>(target.import(bundle));
    expect(refused.body).toEqual({ error, reason: expect.stringContaining(reason) });
    expect(refused.status).toBe(error === "invalid_snapshot_bundle" ? 400 : 409);
    expect(target.names()).toEqual([]);
    expect(target.snapshots.list()).toEqual([]);
  }

  test("holds five files in their order, for their owner only", () => {
    expect(entries.map(({ name }) => name)).toEqual([
      "manifest.json",
      "metadata.json",
      "memory.bin",
      "state.bin",
      "rootfs.ext4",
    ]);
    const manifest = JSON.parse(Buffer.from(content("manifest.json")).toString());
    expect(manifest.files.map(({ path }: { path: string }) => path)).toEqual([
      "memory.bin",
      "metadata.json",
      "rootfs.ext4",
      "state.bin",
    ]);
    expect(manifest).toMatchObject({ snapshot_id: fullId, tenant_id: "acme", egress_policy: "deny_all" });
  });

  test("has neither the agent's token nor a path of its host in it", () => {
    expect(Buffer.from(full).includes("secret of the agent")).toBe(false);
    expect(Buffer.from(full).includes(source.path)).toBe(false);
  });

  test.each([
    ["wrong order", () => pack([entries[1]!, entries[0]!, ...entries.slice(2)]), "manifest.json is expected"],
    ["one missing", () => pack(entries.slice(0, 4)), "rootfs.ext4 is expected, and the end follows"],
    ["none", () => pack([]), "manifest.json is expected, and the end follows"],
    ["one twice", () => pack([...entries.slice(0, 3), ...entries.slice(2)]), "state.bin is expected"],
    ["one more", () => pack([...entries, { name: "x", content: Buffer.from("x") }]), "more than 5 files"],
    ["a name with a directory", () => pack(replaced("memory.bin", { name: "./memory.bin" })), "is expected"],
    ["an absolute name", () => pack(replaced("memory.bin", { name: "/tmp/memory.bin" })), "is expected"],
    ["a name that leads out", () => pack(replaced("memory.bin", { name: "../memory.bin" })), "is expected"],
    ["a hard link", () => pack(replaced("memory.bin", { header: typed("1") })), 'type "1"'],
    ["a symbolic link", () => pack(replaced("memory.bin", { header: typed("2") })), 'type "2"'],
    ["a device", () => pack(replaced("memory.bin", { header: typed("3") })), 'type "3"'],
    ["a directory", () => pack(replaced("memory.bin", { header: typed("5") })), 'type "5"'],
    ["a pax header", () => pack(replaced("memory.bin", { header: typed("x") })), 'type "x"'],
    ["a global pax header", () => pack(replaced("manifest.json", { header: typed("g") })), 'type "g"'],
    ["a sparse file", () => pack(replaced("memory.bin", { header: typed("S") })), 'type "S"'],
    ["a long name", () => pack(replaced("memory.bin", { header: typed("L") })), 'type "L"'],
    [
      "another memory than its hash",
      () => pack(replaced("memory.bin", { content: new Uint8Array(content("memory.bin").byteLength) })),
      "memory.bin is not what manifest.json says",
    ],
    ["a longer memory", () => pack(replaced("memory.bin", { content: new Uint8Array(9e6) })), "more than"],
    ["a longer state", () => pack(replaced("state.bin", { content: new Uint8Array(99) })), "more than"],
    ["a shorter state", () => pack(replaced("state.bin", { content: Buffer.from("x") })), "state.bin is not"],
    [
      "another root",
      () => pack(withContent(entries, "rootfs.ext4", Buffer.from("another"))),
      "root file system",
    ],
    ["a huge manifest", () => pack(replaced("manifest.json", { content: new Uint8Array(1e6) })), "more than"],
    ["no JSON", () => pack(replaced("manifest.json", { content: Buffer.from("{") })), "is not JSON"],
    ["bytes behind its end", () => Buffer.concat([full, new Uint8Array(512).fill(1)]), "behind its end"],
    ["nothing in it", () => new Uint8Array(), "ends in a header"],
    ["compression", () => Bun.gzipSync(new Uint8Array(full)), "the archive"],
  ])("with %s is refused and leaves nothing", async (_, make, reason) => {
    await expectRefused(make(), reason);
  });

  test.each([
    ["a snapshot_id with a path", { snapshot_id: "../snap-1" }],
    ["a hidden snapshot_id", { snapshot_id: ".import-x" }],
    ["a tenant with a path", { tenant_id: "../x" }],
    ["another policy", { egress_policy: "open" }],
    ["another type", { snapshot_type: "diff" }],
    ["a base it should not have", { base_snapshot_id: "snap-1" }],
    ["an unknown key", { surprise: 1 }],
    ["no machine", { machine: undefined }],
    ["no files", { files: [] }],
    ["a time that is none", { created_at: "yesterday" }],
  ])("whose manifest has %s is refused", async (_, change) => {
    const bundle = pack(withJson(entries, "manifest.json", (manifest) => Object.assign(manifest, change)));
    await expectRefused(bundle, "manifest.json is not what it should be");
  });

  test("whose manifest promises too much is refused before that comes", async () => {
    const promising = (name: string, size: number) =>
      pack(
        withJson(entries, "manifest.json", (manifest) => {
          const files = manifest["files"] as { path: string; size_bytes: number }[];
          files.find(({ path }) => path === name)!.size_bytes = size;
        }),
      );
    await expectRefused(promising("memory.bin", 2 ** 40), "memory.bin of 1099511627776 bytes is no full one");
    await expectRefused(promising("state.bin", 2 ** 30), "state.bin is said to have more than");
    await expectRefused(promising("metadata.json", 2 ** 30), "metadata.json is said to have more than");
    await expectRefused(promising("rootfs.ext4", 2 ** 40), "root file system");
  });

  test("of a machine that no VM here can be is refused", async () => {
    for (const machine of [{ cpus: 1000 }, { memoryBytes: 2 ** 40 }]) {
      const bundle = pack(
        withJson(entries, "manifest.json", (manifest) => {
          Object.assign(manifest["machine"] as object, machine);
        }),
      );
      await expectRefused(bundle, "no VM here has");
    }
  });

  test("whose record says something else than its manifest, or has a token or a path, is refused", async () => {
    const changed = (change: object) =>
      pack(withJson(entries, "metadata.json", (value) => Object.assign(value, change)));
    await expectRefused(changed({ tenant_id: "other" }), "another tenant_id");
    await expectRefused(changed({ agent_token: "chosen by the sender" }), "a token, a path");
    await expectRefused(changed({ imported: true }), "a token, a path or a mark");
    for (const key of ["disk_path", "mem_file_path", "stat_file_path", "disk_copy_path", "vsock_path"])
      await expectRefused(changed({ [key]: "/etc/passwd" }), "a token, a path");
    await expectRefused(changed({ extra: 1 }), "metadata.json is not what it should be");
  });

  test("that ends early is refused wherever it ends", async () => {
    const steps = 60;
    for (let step = 0; step < steps; step++)
      await expectRefused(full.subarray(0, Math.floor((full.byteLength * step) / steps)), "");
  });

  test("of a diff needs its base, the very one", async () => {
    await expectRefused(diff, `its base ${fullId} is not here`, "diff_base_missing");
    using other = await FakeHost.open();
    const memoryBin = new Uint8Array(content("memory.bin"));
    memoryBin[0]! ^= 1;
    await other.import(pack(withContent(entries, "memory.bin", memoryBin)));
    const refused = await rejection<EngineError>(other.import(diff));
    expect(refused.body).toMatchObject({ error: "diff_base_missing" });
    expect(other.names()).toEqual([fullId]);
  });

  test("of a diff that is none is refused", async () => {
    using other = await FakeHost.open();
    await other.import(full);
    const parts = await unpack(diff);
    const bad = new Uint8Array(parts.find(({ name }) => name === "memory.bin")!.content);
    bad[64] = 255;
    const refused = await rejection<EngineError>(other.import(pack(withContent(parts, "memory.bin", bad))));
    expect(refused.body).toMatchObject({ error: "invalid_snapshot_bundle" });
    expect(other.names()).toEqual([fullId]);
  });

  test("becomes the snapshot it was, here too, and restores to the same memory", async () => {
    using other = await FakeHost.open();
    const taken = { snapshot_id: fullId, snapshot_type: "full", status: "imported", skipped: false };
    expect(await other.import(full)).toEqual(taken as never);
    expect(await other.import(full)).toEqual({ ...taken, status: "already_present", skipped: true } as never);
    expect(await other.import(diff)).toMatchObject({ base_snapshot_id: fullId, status: "imported" });
    expect(other.snapshots.list()).toEqual(source.snapshots.list());
    const parsed = (host: FakeHost) => JSON.parse(readFileSync(host.at(diffId, "manifest.json"), "utf8"));
    expect(parsed(other)).toEqual(parsed(source));
    for (const name of ["memory.bin", "state.bin"])
      expect(readFileSync(other.at(diffId, name))).toEqual(readFileSync(source.at(diffId, name)));
    const restored = await other.snapshots.restore(diffId, AS_IT_WAS, FOREVER);
    expect(Buffer.compare(restored.memory, memory)).toBe(0);
    expect(restored.order.agentToken).toBeUndefined();
    await other.restart();
    expect(other.snapshots.list()).toEqual(source.snapshots.list());
  });

  test("of another snapshot of that name is a conflict", async () => {
    using other = await FakeHost.open();
    await other.import(full);
    const changed = pack(withContent(entries, "state.bin", Buffer.from("another state")));
    const refused = await rejection<EngineError>(other.import(changed));
    expect(refused).toMatchObject({ status: 409, body: { error: "snapshot_conflict" } });
    expect(other.names()).toEqual([fullId]);
  });

  test("is refused on a disk without room, and for a tenant without quota", async () => {
    using other = await FakeHost.open();
    await other.tenants.put("acme", {
      active_vms: 0,
      snapshot_count: 0,
      snapshot_bytes: 4096,
      concurrent_tasks: 0,
      retained_audit_records: 0,
    });
    expect((await rejection<EngineError>(other.import(full))).body).toMatchObject({
      error: "quota_exceeded",
    });
    other.floorBytes = Number.MAX_SAFE_INTEGER;
    await other.restart();
    expect((await rejection<EngineError>(other.import(full))).status).toBe(507);
    expect(other.names()).toEqual([]);
  });

  test("is not made of a snapshot that is damaged or not there", async () => {
    using other = await FakeHost.open();
    await other.import(full);
    other.rootfs = { ...other.rootfs, sha256: "f".repeat(64) };
    await other.restart();
    expect((await rejection<EngineError>(other.bundle(fullId))).body).toEqual({
      error: "snapshot_export_failed",
      reason: expect.stringContaining("another root file system"),
    });
    expect((await rejection<EngineError>(other.bundle("snap-1"))).body).toEqual({
      error: "snapshot_not_found",
    });
  });

  test("that is being read outlives its snapshot", async () => {
    using other = await FakeHost.open();
    await other.import(full);
    const { stream } = await other.snapshots.export(fullId, FOREVER);
    await other.snapshots.delete(fullId, FOREVER);
    expect(Buffer.compare(await new Response(stream).bytes(), full)).toBe(0);
  });
});
