import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeWithVms } from "../support/real-vm.ts";
import { TestEngine } from "../support/test-engine.ts";
import { eventually } from "../support/test-server.ts";

interface Flock {
  flock_id: string;
  agents: { agent_id: string; vm_id: string }[];
}

async function flockOf(engine: TestEngine, roles: string[]): Promise<Flock> {
  const { status, text, json } = await engine.post("/flocks", { task: "test", roles });
  if (status !== 201) throw new Error(`no flock: ${status} ${text}`);
  return json as Flock;
}

const bodiesOn = async (engine: TestEngine, id: string) =>
  ((await engine.get(`/flocks/${id}/wall/history`)).json as { body: string }[]).map(({ body }) => body);

describeWithVms("flocks of real VMs", () => {
  test("work, stand still, go on, are restarted, and leave no VM", async () => {
    await using engine = await TestEngine.start();
    const { flock_id: id, agents } = await flockOf(engine, ["worker", "reviewer"]);
    const [worker, reviewer] = agents.map(({ vm_id }) => vm_id) as [string, string];
    expect(engine.vmms()).toHaveLength(2);
    expect(await engine.task(worker, "cat /root/.ephemera-flock")).toBe(
      `FLOCK_ID=${id}\nAGENT_ID=worker-1\n`,
    );
    const all = await engine.post(`/flocks/${id}/broadcast`, {
      body: "echo $((6 * 7)); hostname >/tmp/name",
    });
    expect(all.json).toMatchObject({ sent: 2, results: { "reviewer-1": { status: "ok", output: "42\n" } } });

    // What counts in the guest counts no further while the flock is paused.
    await engine.task(
      worker,
      "nohup sh -c 'while :; do echo >>/tmp/ticks; sleep 0.02; done' >/dev/null 2>&1 &",
    );
    expect((await engine.post(`/flocks/${id}/pause`)).json).toMatchObject({ status: "paused", agents: 2 });
    expect((await engine.post(`/vms/${worker}/tasks`, { prompt: "true" })).status).toBe(409);
    await engine.end("SIGKILL");
    await engine.start();
    expect((await engine.get(`/flocks/${id}`)).json).toMatchObject({
      paused: true,
      agents: { "worker-1": { status: "paused" }, "reviewer-1": { status: "paused" } },
    });
    expect((await engine.post(`/flocks/${id}/resume`)).json).toMatchObject({ status: "resumed", agents: 2 });
    const ticks = async () => Number(await engine.task(worker, "wc -l </tmp/ticks"));
    const before = await ticks();
    await eventually("the guest goes on", 20_000, async () => (await ticks()) > before);

    const restarted = await engine.post(`/flocks/${id}/agents/reviewer-1/restart`);
    const { vm_id: fresh } = restarted.json as { vm_id: string };
    expect([restarted.status, fresh === reviewer]).toEqual([200, false]);
    expect(await engine.task(fresh, "ls /tmp/name 2>&1; true")).toContain("No such file");
    expect(engine.vmms()).toHaveLength(2);
    expect((await engine.request("DELETE", `/flocks/${id}`)).json).toEqual({
      status: "deleted",
      flock_id: id,
    });
    expect(engine.vmms()).toEqual([]);
    expect(readdirSync(join(engine.workDir, "vms"))).toEqual([]);
  });

  test("post on their wall from inside under their own names, and from outside, before and after a restart", async () => {
    await using engine = await TestEngine.start();
    const made = await engine.post("/flocks", {
      task: "t",
      roles: ["worker", "worker"],
      egress_policy: "deny_all",
    });
    const { flock_id: id, agents } = made.json as Flock;
    const [first, second] = agents.map(({ vm_id }) => vm_id) as [string, string];
    await engine.task(first, `gtwall "$(printf 'one\\ntwo')"`);
    await engine.post(`/flocks/${id}/post`, { agent_id: "worker-1", body: "from outside" });
    const curl = "curl -sS -o /dev/null -w '%{http_code}' http://ignition.internal";
    const forged = `${curl}/townwall/post -H 'content-type: application/json' -d '{"body":"forged","agent_id":"worker-1"}'`;
    expect(await engine.task(second, forged)).toBe("200");
    expect(
      await engine.task(second, `${curl}/vms; ${curl.replace("ignition.internal", "example.com")}; true`),
    ).toBe("404403");
    await engine.end("SIGKILL");
    await engine.start();
    await engine.task(second, "gtwall again");
    const alone = await engine.vm({ egress_policy: "deny_all" });
    expect(await engine.task(alone, "gtwall nobody 2>&1; echo $?")).toEndWith("\n3\n");
    const messages = (await engine.get(`/flocks/${id}/wall/history`)).json as Record<string, unknown>[];
    expect(messages.map(({ seq, agent_id, body }) => [seq, agent_id, body])).toEqual([
      [1, "worker-1", "one\ntwo"],
      [2, "worker-1", "from outside"],
      [3, "worker-2", "forged"],
      [4, "worker-2", "again"],
    ]);
  });

  test("whose engine is killed between posts lose none that was acknowledged, and numbers go on", async () => {
    await using engine = await TestEngine.start();
    const { flock_id: id } = await flockOf(engine, ["worker"]);
    const acknowledged: string[] = [];
    for (let round = 0; round < 4; round++) {
      let isUp = true;
      const write = async (author: number) => {
        for (let at = 0; isUp; at++) {
          const body = `${round}.${author}.${at}\n${"x".repeat(3000)}`;
          try {
            const { status } = await engine.post(`/flocks/${id}/post`, { agent_id: "worker-1", body });
            if (status === 200) acknowledged.push(body);
          } catch {
            // Killed before it answered: it may be there or not.
            return;
          }
        }
      };
      const writers = [1, 2, 3].map(write);
      const enough = acknowledged.length + 30;
      await eventually("some posts", 20_000, () => acknowledged.length >= enough);
      await engine.end("SIGKILL");
      isUp = false;
      await Promise.all(writers);
      await engine.start();
    }
    const messages = (await engine.get(`/flocks/${id}/wall/history`)).json as { seq: number; body: string }[];
    expect(messages.map(({ seq }) => seq)).toEqual(messages.map((_, at) => at + 1));
    const bodies = new Set(messages.map(({ body }) => body));
    expect(bodies.size).toBe(messages.length);
    expect(acknowledged.filter((body) => !bodies.has(body))).toEqual([]);
  });

  test("whose engine is killed while they are made are whole or gone, and no VM is left", async () => {
    await using engine = await TestEngine.start();
    const acknowledged: string[] = [];
    for (const delayMs of [100, 600, 1200, 2000]) {
      const made = flockOf(engine, ["a", "b", "c"]).then(
        ({ flock_id }) => acknowledged.push(flock_id),
        () => undefined,
      );
      await Bun.sleep(delayMs);
      await engine.end("SIGKILL");
      await made;
      await engine.start();
      const flocks = (await engine.get("/flocks")).json as {
        flock_id: string;
        agents: Record<string, { status: string }>;
      }[];
      const ids = flocks.map(({ flock_id }) => flock_id);
      expect(acknowledged.filter((id) => !ids.includes(id))).toEqual([]);
      for (const { agents } of flocks) {
        expect(Object.keys(agents)).toEqual(["a-1", "b-1", "c-1"]);
        expect(Object.values(agents).map(({ status }) => status)).toEqual(["ready", "ready", "ready"]);
      }
      expect(engine.vmms()).toHaveLength(3 * ids.length);
      expect(readdirSync(join(engine.workDir, "vms"))).toHaveLength(3 * ids.length);
      expect(readdirSync(join(engine.workDir, "flocks")).sort()).toEqual(ids.sort());
      for (const id of ids) await engine.request("DELETE", `/flocks/${id}`);
      acknowledged.length = 0;
      for (const id of ids) expect(readdirSync(join(engine.workDir, "flocks", id))).toEqual(["townwall.log"]);
      for (const id of ids) await Bun.$`rm -r ${join(engine.workDir, "flocks", id)}`;
    }
  });

  test("end their streams with the engine, which ends with status 0", async () => {
    await using engine = await TestEngine.start();
    const { flock_id: id } = await flockOf(engine, ["worker"]);
    await engine.post(`/flocks/${id}/post`, { agent_id: "worker-1", body: "hello" });
    const response = await engine.fetch("GET", `/flocks/${id}/wall`);
    const text = response.text();
    expect((await engine.end("SIGTERM")).status).toBe(0);
    expect(await text).toMatch(/^data: \{"seq":1,.*"body":"hello"\}\n\n$/);
    await engine.start();
    expect(await bodiesOn(engine, id)).toEqual(["hello"]);
  });
});
