import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { EngineError } from "../../../../src/engine/engine-error.ts";
import { type BundleEntry, pack, unpack, withContent, withJson } from "../../../support/bundles.ts";
import { eventually } from "../../../support/eventually.ts";
import { rejection } from "../../../support/rejection.ts";
import { AS_IT_WAS, AUTO, FakeHost, FOREVER, FULL } from "./fake-host.ts";

describe("an import", () => {
  let target: FakeHost;
  let fullId: string;
  let full: Uint8Array;
  let entries: BundleEntry[];

  beforeAll(async () => {
    using source = await FakeHost.open();
    target = await FakeHost.open();
    source.start("vm-1");
    fullId = (await source.snapshots.take("vm-1", FULL, FOREVER)).snapshot_id;
    full = await source.bundle(fullId);
    entries = await unpack(full);
  });
  afterAll(() => target[Symbol.dispose]());

  test("is never what a VM of the name in it is compared with", async () => {
    using other = await FakeHost.open();
    const vm = other.start("vm-1");
    const { snapshot_id: own } = await other.snapshots.take("vm-1", FULL, FOREVER);
    const foreign = withContent(entries, "memory.bin", new Uint8Array(vm.bytes.byteLength).fill(7));
    const created_at = new Date(Date.now() + 3_600_000).toISOString();
    const later = (value: Record<string, unknown>) => Object.assign(value, { created_at });
    const bundle = withJson(withJson(foreign, "metadata.json", later), "manifest.json", later);
    await other.import(pack(bundle));
    vm.write(0, 99);
    const diff = await other.snapshots.take("vm-1", AUTO, FOREVER);
    expect(diff.base_snapshot_id).toBe(own);
    const restored = await other.snapshots.restore(diff.snapshot_id, AS_IT_WAS, FOREVER);
    expect(Buffer.compare(restored.memory, vm.bytes)).toBe(0);
    // Nor is it under the next engine, and it does not travel on as one that is marked.
    await other.restart();
    expect((await other.snapshots.take("vm-1", AUTO, FOREVER)).base_snapshot_id).toBe(own);
    using third = await FakeHost.open();
    expect(await third.import(await other.bundle(fullId))).toMatchObject({ status: "imported" });
  });

  test("whose sender stalls is given up with 408 and leaves nothing", async () => {
    using other = await FakeHost.open();
    other.importIdleMs = 50;
    await other.restart();
    const stalled = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(full.subarray(0, full.byteLength / 2)),
    });
    expect((await rejection<EngineError>(other.snapshots.import(stalled, FOREVER))).status).toBe(408);
    expect(other.names()).toEqual([]);
  });

  test("that breaks off in its sender is refused with the reason", async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error("connection reset")),
    });
    const refused = await rejection<EngineError>(target.snapshots.import(broken, FOREVER));
    expect(refused.body).toMatchObject({ reason: "the archive broke off: connection reset" });
    expect(target.names()).toEqual([]);
  });

  test("is one of four at once, a fifth is refused until one has ended", async () => {
    using other = await FakeHost.open();
    const leaving = new AbortController();
    const silent = () => other.snapshots.import(new ReadableStream<Uint8Array>(), leaving.signal);
    const waiting = [silent(), silent(), silent(), silent()];
    expect(await rejection<EngineError>(other.import(full))).toMatchObject({
      status: 503,
      body: { error: "too_many_imports" },
    });
    leaving.abort(new Error("the clients left"));
    await Promise.allSettled(waiting);
    expect(await other.import(full)).toMatchObject({ status: "imported" });
  });

  test("whose sender is given up on leaves nothing", async () => {
    const leaving = new AbortController();
    const slow = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(full.subarray(0, full.byteLength / 2)),
    });
    const importing = target.snapshots.import(slow, leaving.signal);
    await eventually("the import has begun", () => readdirSync(target.at()).length > 0);
    expect(readdirSync(target.at())).toEqual([expect.stringMatching(/^\.import-/)]);
    leaving.abort(new Error("the client left"));
    expect((await rejection(importing)).message).toBe("the client left");
    expect(target.names()).toEqual([]);
  });
});
