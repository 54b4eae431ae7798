import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { listen } from "../../../src/engine/listener.ts";
import { pack, unpack } from "../../support/bundles.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const TYPE = "application/vnd.anvil.snapshot-bundle";

async function snapshotOf(engine: FakeEngine, vmId: string): Promise<string> {
  return ((await engine.post(`/vms/${vmId}/snapshot`)).json as { snapshot_id: string }).snapshot_id;
}

async function exported(engine: FakeEngine, id: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await engine.engine.app.request(`/snapshots/${id}/export`, { method: "POST" });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe(TYPE);
  return new Uint8Array(await response.arrayBuffer());
}

function sent(engine: FakeEngine, body: Uint8Array<ArrayBuffer>, type = TYPE) {
  return engine.request("POST", "/snapshots/import", { body, headers: { "content-type": type } });
}

test("POST export and import move a full snapshot and its diff to another engine, where they restore", async () => {
  await using source = await FakeEngine.open();
  await using target = await FakeEngine.open();
  const vmId = await source.vm({ tenant_id: "acme" });
  const full = await snapshotOf(source, vmId);
  const { memory } = source.machines.of(vmId);
  memory.write(5, 55);
  const diff = await snapshotOf(source, vmId);
  const [fullBundle, diffBundle] = [await exported(source, full), await exported(source, diff)];
  expect(await sent(target, diffBundle)).toMatchObject({
    status: 409,
    json: { error: "diff_base_missing", reason: expect.stringContaining(full) },
  });
  const fields = { snapshot_id: full, snapshot_type: "full" };
  expect(await sent(target, fullBundle)).toMatchObject({
    status: 201,
    json: { ...fields, status: "imported", skipped: false },
  });
  expect(await sent(target, fullBundle)).toMatchObject({
    status: 200,
    json: { ...fields, status: "already_present", skipped: true },
  });
  expect(await sent(target, diffBundle)).toMatchObject({ status: 201, json: { base_snapshot_id: full } });
  expect((await target.get("/snapshots")).json).toEqual((await source.get("/snapshots")).json);
  const restored = (await target.post(`/snapshots/${diff}/restore`)).json as { vm_id: string };
  expect(Buffer.compare(target.machines.of(restored.vm_id).memory.bytes, memory.bytes)).toBe(0);
});

test("POST export answers 404 for an unknown snapshot and 500 for one it cannot vouch for", async () => {
  await using engine = await FakeEngine.open();
  expect(await engine.post("/snapshots/snap-1/export")).toMatchObject({
    status: 404,
    json: { error: "snapshot_not_found" },
  });
  const id = await snapshotOf(engine, await engine.vm());
  await Bun.write(engine.directory.join("engine", "snapshots", id, "state.bin"), "state after 9 writes");
  expect(await engine.post(`/snapshots/${id}/export`)).toMatchObject({
    status: 500,
    json: { error: "snapshot_export_failed", reason: expect.stringContaining("state.bin is not") },
  });
});

test("POST import refuses another content type, no body, and a bundle that is none, and leaves nothing", async () => {
  await using engine = await FakeEngine.open();
  const refused = (reason: string) => ({
    status: 400,
    json: { error: "invalid_snapshot_bundle", reason: expect.stringContaining(reason) },
  });
  const bytes = new Uint8Array(Buffer.from("no archive"));
  for (const type of ["application/octet-stream", "application/json", "text/plain", `${TYPE}x`])
    expect(await sent(engine, bytes, type)).toMatchObject(refused(`content type must be ${TYPE}`));
  const empty = await engine.request("POST", "/snapshots/import", { headers: { "content-type": TYPE } });
  expect(empty).toMatchObject(refused("the archive is empty"));
  expect(await sent(engine, bytes)).toMatchObject(refused("the archive ends in a header"));
  expect(readdirSync(engine.directory.join("engine", "snapshots"))).toEqual([]);
});

test("POST import answers a sender it refuses while that still sends, and goes on serving", async () => {
  await using engine = await FakeEngine.open();
  const listener = await listen(engine.engine.app, { host: "127.0.0.1", port: 0 });
  const { port } = listener.address as { port: number };
  try {
    const id = await snapshotOf(engine, await engine.vm());
    const entries = await unpack(await exported(engine, id));
    entries[0] = { ...entries[0]!, content: Buffer.from("{}") };
    const body = new Uint8Array(Buffer.concat([pack(entries), new Uint8Array(64 * 1_048_576)]));
    const url = `http://127.0.0.1:${port}`;
    const answer = await fetch(`${url}/snapshots/import`, {
      method: "POST",
      body,
      headers: { "content-type": TYPE },
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: "invalid_snapshot_bundle" });
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(readdirSync(engine.directory.join("engine", "snapshots"))).toEqual([id]);
  } finally {
    await listener.stop();
  }
});
