import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeWithVms } from "../support/real-vm.ts";
import { TestEngine } from "../support/test-engine.ts";
import { eventually } from "../support/test-server.ts";
import { flipBit } from "../support/test-store.ts";

const BUNDLE = "application/vnd.anvil.snapshot-bundle";
/** Counts up in a file, some ten steps a second. */
const COUNTER = `(i=0; while :; do i=$((i+1)); echo $i >/root/count.new; mv /root/count.new /root/count; sleep 0.1; done) >/dev/null 2>&1 &`;

interface Snapshot {
  snapshot_id: string;
  snapshot_type: string;
  base_snapshot_id?: string;
}

async function snapshot(engine: TestEngine, vmId: string, request: object = {}): Promise<Snapshot> {
  const { status, text, json } = await engine.post(`/vms/${vmId}/snapshot`, request);
  if (status !== 201) throw new Error(`no snapshot: ${status} ${text}`);
  return json as Snapshot;
}

async function restore(engine: TestEngine, id: string): Promise<string> {
  const { status, text, json } = await engine.post(`/snapshots/${id}/restore`);
  if (status !== 201) throw new Error(`not restored: ${status} ${text}`);
  return (json as { vm_id: string }).vm_id;
}

const countOf = async (engine: TestEngine, vmId: string) =>
  Number(await engine.task(vmId, "cat /root/count"));
const names = (engine: TestEngine) => readdirSync(join(engine.workDir, "snapshots")).sort();
const bundlePath = (engine: TestEngine, id: string) => join(engine.home.path, `${id}.tar`);

async function exportTo(engine: TestEngine, id: string): Promise<string> {
  const response = await engine.fetch("POST", `/snapshots/${id}/export`);
  expect(response.status).toBe(200);
  await Bun.write(bundlePath(engine, id), response);
  return bundlePath(engine, id);
}

function importFrom(engine: TestEngine, path: string) {
  return engine.request("POST", "/snapshots/import", {
    body: Bun.file(path),
    headers: { "content-type": BUNDLE },
  });
}

describeWithVms("snapshots of a real VM", () => {
  let engine: TestEngine;
  let other: TestEngine;
  let full: Snapshot;
  let diff: Snapshot;
  /** What the VM had counted before each */
  let counts: [number, number];

  beforeAll(async () => {
    engine = await TestEngine.start();
    other = await TestEngine.start();
    const vmId = await engine.vm();
    await engine.task(vmId, `echo first >/root/file; head -c 3000000 /dev/urandom >/root/large; ${COUNTER}`);
    await eventually("counting", 10_000, async () => (await countOf(engine, vmId)) > 3);
    counts = [await countOf(engine, vmId), 0];
    full = await snapshot(engine, vmId);
    await engine.task(
      vmId,
      "echo second >/root/file; echo more >/root/more; sha256sum /root/large >/root/sum",
    );
    counts[1] = await countOf(engine, vmId);
    diff = await snapshot(engine, vmId, { stop_after: true });
  });
  afterAll(async () => {
    await other[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** Counts on, from no earlier than `least`. */
  async function expectCounting(on: TestEngine, vmId: string, least: number) {
    const first = await countOf(on, vmId);
    expect(first).toBeGreaterThanOrEqual(least);
    await eventually("counting on", 10_000, async () => (await countOf(on, vmId)) > first + 3);
  }

  test("are a full one and a far smaller diff of it, and the VM ends when that is wanted", async () => {
    expect(full).toMatchObject({ snapshot_type: "full" });
    expect(diff).toMatchObject({ snapshot_type: "diff", base_snapshot_id: full.snapshot_id });
    const bytes = (id: string) => Bun.file(join(engine.workDir, "snapshots", id, "memory.bin")).size;
    expect(bytes(diff.snapshot_id)).toBeLessThan(bytes(full.snapshot_id) / 10);
    expect((await engine.get("/vms")).json).toEqual([]);
    expect(engine.vmms()).toEqual([]);
  });

  test("restore to its files and processes of their moment, several times, side by side", async () => {
    const [fromFull, fromDiff, again] = [
      await restore(engine, full.snapshot_id),
      await restore(engine, diff.snapshot_id),
      await restore(engine, diff.snapshot_id),
    ];
    expect(await engine.task(fromFull, "cat /root/file; ls /root/more 2>&1 | wc -l")).toBe("first\n1\n");
    for (const vmId of [fromDiff, again])
      expect(await engine.task(vmId, "cat /root/file /root/more; sha256sum --check --quiet /root/sum")).toBe(
        "second\nmore\n",
      );
    await expectCounting(engine, fromFull, counts[0]);
    await expectCounting(engine, fromDiff, counts[1]);
    await engine.task(fromDiff, "echo mine >/root/file");
    expect(await engine.task(again, "cat /root/file")).toBe("second\n");
    expect((await engine.request("DELETE", `/snapshots/${diff.snapshot_id}`)).status).toBe(409);
    const ofRestored = await snapshot(engine, fromDiff);
    const diffOfRestored = await snapshot(engine, fromDiff);
    expect(ofRestored.snapshot_type).toBe("full");
    for (const vmId of [fromFull, fromDiff, again]) await engine.request("DELETE", `/vms/${vmId}`);
    const last = await restore(engine, diffOfRestored.snapshot_id);
    expect(await engine.task(last, "cat /root/file /root/more")).toBe("mine\nmore\n");
    await engine.request("DELETE", `/vms/${last}`);
    for (const { snapshot_id } of [diffOfRestored, ofRestored])
      expect((await engine.request("DELETE", `/snapshots/${snapshot_id}`)).status).toBe(200);
  });

  test("move to another engine in bundles, and restore there", async () => {
    for (const { snapshot_id } of [full, diff]) {
      const imported = await importFrom(other, await exportTo(engine, snapshot_id));
      expect(imported).toMatchObject({ status: 201, json: { snapshot_id, status: "imported" } });
    }
    const vmId = await restore(other, diff.snapshot_id);
    expect(await other.task(vmId, "cat /root/file; sha256sum --check --quiet /root/sum")).toBe("second\n");
    await expectCounting(other, vmId, counts[1]);
    await other.request("DELETE", `/vms/${vmId}`);
    expect(await importFrom(other, bundlePath(engine, diff.snapshot_id))).toMatchObject({ status: 200 });
  });

  test("are refused when a bit of them is another, and restore when it is right again", async () => {
    const path = join(engine.workDir, "snapshots", full.snapshot_id, "memory.bin");
    flipBit(path, 99_000_000);
    for (const { snapshot_id } of [full, diff])
      expect(await engine.post(`/snapshots/${snapshot_id}/restore`)).toMatchObject({
        status: 500,
        json: { code: "firecracker_restore_failed", source_snapshot_id: snapshot_id },
      });
    expect(engine.vmms()).toEqual([]);
    flipBit(path, 99_000_000);
    await engine.request("DELETE", `/vms/${await restore(engine, full.snapshot_id)}`);
  });

  test("restore under the next engine too, and a VM of one keeps it from being deleted there", async () => {
    const vmId = await restore(other, diff.snapshot_id);
    await other.end("SIGKILL");
    await other.start();
    expect(await other.task(vmId, "cat /root/file")).toBe("second\n");
    expect((await other.request("DELETE", `/snapshots/${diff.snapshot_id}`)).status).toBe(409);
    const own = await snapshot(other, vmId);
    const copy = await restore(other, own.snapshot_id);
    expect(await other.task(copy, "cat /root/file")).toBe("second\n");
  });
});

/** Of a snapshot in the making, which may be finished while we look. */
function draftFiles(engine: TestEngine): string[] {
  const draft = names(engine).find((name) => name.startsWith(".taking-"));
  try {
    return draft === undefined ? [] : readdirSync(join(engine.workDir, "snapshots", draft));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The VM has its files and its processes still. */
async function expectGoingOn(engine: TestEngine, vmId: string): Promise<void> {
  expect(await engine.task(vmId, "cat /root/file")).toBe("kept\n");
  const count = await countOf(engine, vmId);
  await eventually("counting on", 10_000, async () => (await countOf(engine, vmId)) > count);
}

describeWithVms("a VM that is snapshotted", () => {
  test("with stop_after does nothing any more that a restore would do again", async () => {
    await using engine = await TestEngine.start();
    const made = await engine.post("/flocks", { task: "t", roles: ["worker"] });
    const { flock_id: id, agents } = made.json as { flock_id: string; agents: { vm_id: string }[] };
    const vmId = agents[0]!.vm_id;
    const loop =
      "i=0; while :; do i=$((i+1)); echo $i >/root/count.new; mv /root/count.new /root/count; gtwall $i || exit; done";
    await engine.task(vmId, `nohup sh -c '${loop}' >/dev/null 2>&1 &`);
    const posted = async () =>
      ((await engine.get(`/flocks/${id}/wall/history`)).json as { body: string }[]).map(({ body }) =>
        Number(body),
      );
    await eventually("some posts", 20_000, async () => (await posted()).length > 5);
    const { snapshot_id } = await snapshot(engine, vmId, { stop_after: true });
    const restored = await restore(engine, snapshot_id);
    expect(await countOf(engine, restored)).toBeGreaterThanOrEqual(Math.max(...(await posted())));
  });
});

/** Kills the engine during a full snapshot; on a fast disk one may be done before, and is made anew then. */
async function killWhile(engine: TestEngine, vmId: string, isThen: () => boolean): Promise<void> {
  for (let tries = 0; tries < 10; tries++) {
    const before = names(engine);
    let isOver = false;
    const taking = engine
      .post(`/vms/${vmId}/snapshot`, { type: "full" })
      .catch(() => undefined)
      .finally(() => {
        isOver = true;
      });
    while (!isOver && !isThen()) await Bun.sleep(1);
    await engine.end("SIGKILL");
    await taking;
    const added = names(engine).filter((name) => !before.includes(name));
    expect(added).toHaveLength(1);
    if (added[0]!.startsWith(".taking-")) return;
    await engine.start();
    await engine.request("DELETE", `/snapshots/${added[0]}`);
  }
  throw new Error("each snapshot was done before the engine was killed");
}

describeWithVms("an engine that is killed", () => {
  test("in the middle of a full snapshot leaves none, and its VM goes on under the next one", async () => {
    await using engine = await TestEngine.start();
    const vmId = await engine.vm();
    await engine.task(vmId, `echo kept >/root/file; ${COUNTER}`);
    const first = await snapshot(engine, vmId);
    for (const file of ["memory.bin", "state.bin"]) {
      await killWhile(engine, vmId, () => draftFiles(engine).includes(file));
      await engine.start();
      expect(names(engine)).toEqual([first.snapshot_id]);
      await expectGoingOn(engine, vmId);
    }
    const next = await snapshot(engine, vmId);
    expect(await engine.task(await restore(engine, next.snapshot_id), "cat /root/file")).toBe("kept\n");
  });

  test("at any moment of a diff leaves it whole or not at all", async () => {
    await using engine = await TestEngine.start();
    const vmId = await engine.vm();
    await engine.task(vmId, `echo kept >/root/file; ${COUNTER}`);
    await snapshot(engine, vmId);
    for (const delayMs of [0, 5, 15, 40]) {
      let isOver = false;
      void engine
        .post(`/vms/${vmId}/snapshot`, { type: "diff" })
        .catch(() => undefined)
        .finally(() => {
          isOver = true;
        });
      while (!isOver && draftFiles(engine).length === 0) await Bun.sleep(1);
      await Bun.sleep(delayMs);
      await engine.end("SIGKILL");
      await engine.start();
      const listed = ((await engine.get("/snapshots")).json as Snapshot[]).map((each) => each.snapshot_id);
      expect(names(engine)).toEqual(listed.toSorted());
      await expectGoingOn(engine, vmId);
      const restored = await restore(engine, listed.at(-1)!);
      expect(await engine.task(restored, "cat /root/file")).toBe("kept\n");
      await engine.request("DELETE", `/vms/${restored}`);
    }
  });

  test("in the middle of an import leaves nothing, and the next one takes the bundle", async () => {
    await using engine = await TestEngine.start();
    const { snapshot_id } = await snapshot(engine, await engine.vm(), { stop_after: true });
    const path = await exportTo(engine, snapshot_id);
    await engine.request("DELETE", `/snapshots/${snapshot_id}`);
    const half = await Bun.file(path).slice(0, 200_000_000).bytes();
    const stalled = new ReadableStream({ start: (controller) => controller.enqueue(half) });
    const headers = { "content-type": BUNDLE };
    void engine.request("POST", "/snapshots/import", { body: stalled, headers }).catch(() => undefined);
    await eventually("the draft", 20_000, () => names(engine).some((name) => name.startsWith(".import-")));
    await engine.end("SIGKILL");
    expect(names(engine)).toHaveLength(1);
    await engine.start();
    expect(names(engine)).toEqual([]);
    expect((await engine.get("/snapshots")).json).toEqual([]);
    expect((await importFrom(engine, path)).status).toBe(201);
    expect(await engine.task(await restore(engine, snapshot_id), "echo up")).toBe("up\n");
  });
});
