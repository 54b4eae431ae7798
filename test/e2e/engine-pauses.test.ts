import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { describeWithVms } from "../support/real-vm.ts";
import { Rng } from "../support/rng.ts";
import { TestEngine } from "../support/test-engine.ts";
import { eventually } from "../support/test-server.ts";

/** More than the host waits for a killed run to end, and less than it waits for anything else */
const PAST_THE_GRACE_MS = 12_000;
const ROUNDS = 8;
/** A full snapshot begins to stop the machine within this time */
const LATEST_PAUSE_MS = 150;
/** In which a guest that runs would spend processor time */
const LOOK_MS = 500;

async function flockOfOne(engine: TestEngine): Promise<{ id: string; vmId: string }> {
  const { status, text, json } = await engine.post("/flocks", { task: "test", roles: ["worker"] });
  if (status !== 201) throw new Error(`no flock: ${status} ${text}`);
  const { flock_id, agents } = json as { flock_id: string; agents: { vm_id: string }[] };
  return { id: flock_id, vmId: agents[0]!.vm_id };
}

const statusOf = async (engine: TestEngine, vmId: string) =>
  ((await engine.get("/vms")).json as { vm_id: string; status: string }[]).find((vm) => vm.vm_id === vmId)
    ?.status;

/** Of its QEMU, in clock ticks */
function processorTime(engine: TestEngine): number {
  const { pid } = engine.vmms()[0]!;
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

describeWithVms("a flock that is paused while its VM is busy", () => {
  test("loses nothing when a caller gives up meanwhile, and its clock is right afterwards", async () => {
    await using engine = await TestEngine.start();
    const { id, vmId } = await flockOfOne(engine);
    await engine.task(vmId, "echo kept >file");
    const caller = new AbortController();
    const task = engine.post(
      `/vms/${vmId}/tasks`,
      { prompt: "touch begun; sleep 60; touch done" },
      { signal: caller.signal },
    );
    const gaveUp = task.catch(() => "gave up");
    await eventually(
      "the task runs",
      20_000,
      async () => (await engine.get(`/vms/${vmId}/workspace?path=begun`)).status === 200,
    );
    expect((await engine.post(`/flocks/${id}/pause`)).status).toBe(200);
    caller.abort();
    expect(await gaveUp).toBe("gave up");
    await Bun.sleep(PAST_THE_GRACE_MS);
    expect(await statusOf(engine, vmId)).toBe("paused");
    expect((await engine.post(`/flocks/${id}/resume`)).status).toBe(200);
    await eventually("the task is killed", 20_000, async () => {
      const health = (await engine.get(`/vms/${vmId}/health`)).json as { status: string };
      return health.status === "idle";
    });
    expect(await engine.task(vmId, "cat file; test -e done; echo $?; pgrep -fc 'sleep 6[0]'; true")).toBe(
      "kept\n1\n0\n",
    );
    const before = Date.now();
    const guestMs = Number(await engine.task(vmId, "date +%s%3N"));
    expect(guestMs).toBeGreaterThan(before - 1000);
    expect(guestMs).toBeLessThan(Date.now() + 1000);
  });

  test("stands still exactly when it is listed as paused, whatever snapshots do", async () => {
    await using engine = await TestEngine.start();
    const { id, vmId } = await flockOfOne(engine);
    await engine.task(vmId, "nohup sh -c 'while :; do :; done' >/dev/null 2>&1 &");
    const rng = new Rng(7);
    const statuses = new Set<number>();
    for (let round = 0; round < ROUNDS; round++) {
      const taking = engine.post(`/vms/${vmId}/snapshot`, { type: "full" });
      await Bun.sleep(rng.below(LATEST_PAUSE_MS));
      expect((await engine.post(`/flocks/${id}/pause`)).status).toBe(200);
      const { status, json } = await taking;
      statuses.add(status);
      if (status === 201)
        await engine.request("DELETE", `/snapshots/${(json as { snapshot_id: string }).snapshot_id}`);
      expect(await statusOf(engine, vmId)).toBe("paused");
      const spent = processorTime(engine);
      await Bun.sleep(LOOK_MS);
      expect(processorTime(engine) - spent).toBeLessThan(5);
      expect((await engine.post(`/flocks/${id}/resume`)).status).toBe(200);
      expect(await engine.task(vmId, "echo awake")).toBe("awake\n");
    }
    expect([...statuses].filter((status) => status !== 201 && status !== 409)).toEqual([]);
  });
});
