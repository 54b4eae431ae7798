import { describe, expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { rejection } from "../../../support/rejection.ts";
import { flipBit } from "../../../support/test-store.ts";
import { AS_IT_WAS, DIFF, FakeHost, FOREVER, FULL } from "./fake-host.ts";

const take = (host: FakeHost, request: typeof FULL | typeof DIFF = FULL) =>
  host.snapshots.take("vm-1", request, FOREVER);

describe("the directory of snapshots", () => {
  test("has the same snapshots for the next engine", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    await take(host);
    await take(host, DIFF);
    const before = host.snapshots.list();
    await host.restart();
    expect(host.snapshots.list()).toEqual(before);
    expect((await host.snapshots.restore(before[1]!.snapshot_id, AS_IT_WAS, FOREVER)).vmId).toBeDefined();
  });

  test("is cleared of what was left half made, also of merged memories", async () => {
    using host = await FakeHost.open();
    for (const name of [".taking-x", ".import-y", ".removing-z", "../merged/snapshots/.merging-a"]) {
      mkdirSync(host.at(name), { recursive: true });
      writeFileSync(host.at(name, "memory.bin"), "half");
    }
    await host.restart();
    expect(host.names()).toEqual([]);
    expect(readdirSync(`${host.rootPath}/merged/snapshots`)).toEqual([]);
  });

  test.each(["metadata.json", "manifest.json"])("survives a %s torn at any byte", async (name) => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const { snapshot_id } = await take(host);
    const whole = readFileSync(host.at(snapshot_id, name));
    for (let bytes = 0; bytes < whole.byteLength - 1; bytes += 31) {
      writeFileSync(host.at(snapshot_id, name), whole.subarray(0, bytes));
      await host.restart();
      expect(host.snapshots.list()).toEqual([]);
      renameSync(host.at(`${snapshot_id}.damaged`), host.at(snapshot_id));
    }
    writeFileSync(host.at(snapshot_id, name), whole);
    await host.restart();
    expect(host.snapshots.list()).toHaveLength(1);
  });

  test("has sound and damaged snapshots told apart with a verified.json torn at any byte", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const { snapshot_id } = await take(host);
    const seal = host.at(snapshot_id, "verified.json");
    const whole = readFileSync(seal);
    for (let bytes = 0; bytes < whole.byteLength; bytes += 31) {
      writeFileSync(seal, whole.subarray(0, bytes));
      await host.restart();
      await host.snapshots.restore(snapshot_id, AS_IT_WAS, FOREVER);
    }
    writeFileSync(seal, whole.subarray(0, 10));
    flipBit(host.at(snapshot_id, "memory.bin"), 5000);
    const refused = await rejection(host.snapshots.restore(snapshot_id, AS_IT_WAS, FOREVER));
    expect(refused.message).toContain("memory.bin is not what its manifest says");
  });

  test("has a whole line for a collection behind one that a crash cut off", async () => {
    using host = await FakeHost.open();
    writeFileSync(host.at("gc-audit.jsonl"), '{"applied":tr');
    await host.restart();
    const policy = { older_than_seconds: 0, keep_last_per_vm: 1, max_total_bytes: 0 };
    const report = await host.snapshots.collect(policy, true, FOREVER);
    const lines = readFileSync(host.at("gc-audit.jsonl"), "utf8").trimEnd().split("\n");
    expect([lines.length, JSON.parse(lines[1]!)]).toEqual([2, report]);
  });

  test.each([
    ["metadata.json torn", (path: (name: string) => string) => truncateSync(path("metadata.json"), 40)],
    ["metadata.json missing", (path: (name: string) => string) => rmSync(path("metadata.json"))],
    ["manifest.json empty", (path: (name: string) => string) => truncateSync(path("manifest.json"), 0)],
    ["manifest.json missing", (path: (name: string) => string) => rmSync(path("manifest.json"))],
    ["memory.bin short", (path: (name: string) => string) => truncateSync(path("memory.bin"), 4096)],
    ["state.bin missing", (path: (name: string) => string) => rmSync(path("state.bin"))],
  ])("sets a damaged snapshot aside and says so: %s", async (_, damage) => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const { snapshot_id: bad } = await take(host);
    const { snapshot_id: good } = await take(host);
    damage((name) => host.at(bad, name));
    await host.restart();
    expect(host.snapshots.list().map((each) => each.snapshot_id)).toEqual([good]);
    expect(host.names()).toEqual([`${bad}.damaged`, good].sort());
    expect(host.warnings).toEqual([`a snapshot cannot be read and is set aside as ${bad}.damaged`]);
  });
});
