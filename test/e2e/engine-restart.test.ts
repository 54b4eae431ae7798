import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { TELL_CGROUP } from "../../src/engine/tasks/interrupted-task.ts";
import { AgentClient } from "../../src/guest/agent-client.ts";
import { runCommand } from "../../src/guest/run-command.ts";
import { startRun } from "../../src/guest/run-handle.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { runExecutable } from "../support/run-executable.ts";
import { TestEngine } from "../support/test-engine.ts";
import { eventually } from "../support/test-server.ts";

const NEVER = new AbortController().signal;
const IDLE_RUN = { stdin: null, cwd: null, timeoutMs: 60_000, maxOutputBytes: 1024 };

const stateOf = (engine: TestEngine, id: string) => join(engine.workDir, "vms", id, "state.json");
const recordOf = (engine: TestEngine, id: string) => JSON.parse(readFileSync(stateOf(engine, id), "utf8"));

/** One command to a VMM that no engine is connected to. */
function tellVmm(socketDir: string, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(socketDir, "qmp.sock"));
    let text = "";
    socket.on("error", reject);
    socket.on("data", (bytes) => {
      text += bytes.toString();
      if (text.split('"return"').length < 3) return;
      socket.destroy();
      resolve();
    });
    socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"${command}"}\n`);
  });
}

describeWithVms("an engine that is killed", () => {
  test("in the middle of a task: the VM is adopted, idle, with its files and processes, without the task's", async () => {
    await using engine = await TestEngine.start();
    const [id, other] = [await engine.vm({ tenant_id: "acme" }), await engine.vm()];
    await engine.task(id, "echo kept > file; nohup sleep 7001 >/dev/null 2>&1 &");
    const [before, vmms] = [(await engine.get("/vms")).json, engine.vmms().map(({ pid }) => pid)];
    const lost = engine.post(`/vms/${id}/tasks`, { prompt: "touch begun; sleep 7002" }).catch(() => "lost");
    await eventually(
      "the task runs",
      20_000,
      async () => (await engine.get(`/vms/${id}/workspace?path=begun`)).status === 200,
    );
    await engine.end("SIGKILL");
    expect(await lost).toBe("lost");
    await engine.start();
    expect((await engine.get("/vms")).json).toEqual(before);
    expect(engine.vmms().map(({ pid }) => pid)).toEqual(vmms);
    expect((await engine.get(`/vms/${id}/health`)).json).toEqual({ status: "idle" });
    const processes = 'for n in 1 2; do pgrep -fc "sleep 700[$n]"; done; cat file';
    expect(await engine.task(id, processes)).toBe("1\n0\nkept\n");
    expect(await engine.task(other, "echo fine")).toBe("fine\n");
  });

  test("while it makes VMs: none that was acknowledged is lost, none is half made, no process is left", async () => {
    await using engine = await TestEngine.start();
    const acknowledged: string[] = [];
    for (const delayMs of [0, 60, 120, 180, 240, 320]) {
      const made = engine.vm().then(
        (id) => acknowledged.push(id),
        () => undefined,
      );
      await Bun.sleep(delayMs);
      await engine.end("SIGKILL");
      await made;
      await engine.start();
      const listed = (await engine.get("/vms")).json as { vm_id: string; status: string }[];
      const ids = listed.map(({ vm_id }) => vm_id);
      expect(acknowledged.filter((id) => !ids.includes(id))).toEqual([]);
      expect(listed.every(({ status }) => status === "running")).toBe(true);
      expect(engine.vmms()).toHaveLength(ids.length);
      expect(readdirSync(join(engine.workDir, "vms")).sort()).toEqual(ids.sort());
    }
  });

  test("a VM that stood still when the engine died goes on", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    await engine.end("SIGKILL");
    await tellVmm(recordOf(engine, id).socket_dir, "stop");
    await engine.start();
    expect(await engine.task(id, "echo awake")).toBe("awake\n");
  });

  test("in the middle of a copy: the task that was frozen for it is ended, what earlier ones left is not", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    await engine.task(id, "nohup sleep 7003 >/dev/null 2>&1 &");
    await engine.end("SIGKILL");
    // What an engine does from the start of a task up to the moment at which it is killed.
    writeFileSync(join(engine.workDir, "vms", id, "task-in-flight"), "");
    const agent = await AgentClient.connect({
      path: join(recordOf(engine, id).socket_dir, "vsock.sock"),
      deadlineMs: 20_000,
    });
    const run = startRun(agent, { ...IDLE_RUN, command: Buffer.from(`${TELL_CGROUP}sleep 7004`) }, NEVER);
    await eventually("the task runs", 60_000, async () => {
      const count = await runCommand(
        agent,
        { ...IDLE_RUN, command: Buffer.from("pgrep -fxc 'sleep 7004'") },
        NEVER,
      );
      return Buffer.concat([count.stdout.head, count.stdout.tail]).toString() === "1\n";
    });
    await agent.hold();
    agent.close();
    await expect(run.ended).rejects.toThrow();
    await engine.start();
    const processes = 'for n in 3 4; do pgrep -fc "sleep 700[$n]"; done; true';
    expect(await engine.task(id, processes)).toBe("1\n0\n");
  });

  test("a VM that died meanwhile is told as dead with its cause, and one whose record is torn is ended", async () => {
    await using engine = await TestEngine.start();
    const [dead, torn, alive] = [await engine.vm(), await engine.vm(), await engine.vm()];
    await engine.end("SIGKILL");
    process.kill(Number(recordOf(engine, dead).machine.vmm.split("-")[0]), "SIGKILL");
    truncateSync(stateOf(engine, torn), 100);
    await engine.start();
    const [first, second, ...rest] = (await engine.get("/vms")).json as Record<string, string>[];
    expect(first).toMatchObject({ vm_id: dead, status: "dead" });
    expect(first?.["cause"]).toStartWith("it did not outlive the engine: ");
    expect([second?.["vm_id"], second?.["status"], rest]).toEqual([alive, "running", []]);
    expect(engine.vmms()).toHaveLength(1);
    expect(readdirSync(join(engine.workDir, "vms"))).toContain(`${torn}.damaged`);
  });

  test("a VMM that put a link in its socket's place meanwhile leads the next engine to no other VM", async () => {
    await using engine = await TestEngine.start();
    const [hostile, other] = [await engine.vm(), await engine.vm()];
    await engine.end("SIGKILL");
    const socketOf = (id: string) => join(recordOf(engine, id).socket_dir, "vsock.sock");
    rmSync(socketOf(hostile));
    symlinkSync(socketOf(other), socketOf(hostile));
    await engine.start();
    expect((await engine.get("/vms")).json).toMatchObject([
      { vm_id: hostile, status: "dead" },
      { vm_id: other, status: "running" },
    ]);
    expect(engine.vmms()).toHaveLength(1);
    expect(await engine.task(other, "echo fine")).toBe("fine\n");
  });

  test("SIGTERM leaves VMs to the next engine, --end-vms ends them with all they had", async () => {
    await using engine = new TestEngine();
    await engine.start([]);
    const id = await engine.vm();
    await engine.task(id, "echo kept > file");
    expect((await engine.end("SIGTERM")).status).toBe(0);
    expect(engine.vmms()).toHaveLength(1);
    await engine.start([]);
    expect(await engine.task(id, "cat file")).toBe("kept\n");
    expect((await engine.end("SIGTERM")).status).toBe(0);
    expect(engine.vmms()).toHaveLength(1);
    await engine.start(["--end-vms"]);
    expect(await engine.task(id, "cat file")).toBe("kept\n");
    expect((await engine.end("SIGTERM")).status).toBe(0);
    expect(engine.vmms()).toEqual([]);
    expect(readdirSync(join(engine.workDir, "vms"))).toEqual([]);
  });

  test("a new one that cannot listen leaves what it has adopted, also with --end-vms", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    await engine.task(id, "echo kept > file");
    await engine.end("SIGKILL");
    using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const env = { ...engine.env, ANVIL_API_ADDR: `127.0.0.1:${taken.port}` };
    expect((await runExecutable(["daemon", "--end-vms"], env, 60_000)).status).toBe(1);
    expect(engine.vmms()).toHaveLength(1);
    await engine.start();
    expect(await engine.task(id, "cat file")).toBe("kept\n");
  });

  test("while it deletes VMs: each is there or gone, and no process and no file is left of one that is gone", async () => {
    await using engine = await TestEngine.start();
    for (const delayMs of [0, 20, 60, 120, 250]) {
      const id = await engine.vm();
      const deleting = engine.request("DELETE", `/vms/${id}`).catch(() => null);
      await Bun.sleep(delayMs);
      await engine.end("SIGKILL");
      const isTold = (await deleting)?.status === 200;
      await engine.start();
      const listed = (await engine.get("/vms")).json as { vm_id: string; status: string }[];
      const ids = listed.map(({ vm_id }) => vm_id);
      if (isTold) expect(ids).not.toContain(id);
      expect(engine.vmms()).toHaveLength(listed.filter(({ status }) => status === "running").length);
      expect(readdirSync(join(engine.workDir, "vms")).sort()).toEqual(ids.sort());
    }
  });

  test("a second engine in the same directory ends with status 1 and names the first", async () => {
    await using engine = await TestEngine.start();
    const env = { ...engine.env, ANVIL_API_ADDR: `unix:${engine.socketPath}.other` };
    const { status, stderr } = await runExecutable(["daemon"], env);
    expect(status).toBe(1);
    expect(stderr).toContain("another engine (process ");
  });
});
