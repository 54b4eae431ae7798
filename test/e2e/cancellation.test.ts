import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

const MARKER = "sleep 31415";
/** All that a run may try to outlive its end: a new session, lost parents, and deaf ears. */
const STUBBORN = `
setsid ${MARKER} &
(setsid sh -c 'trap "" TERM INT HUP; ${MARKER}' &)
python3 -c 'import os,signal,time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "31415"])
    os._exit(0)
os.wait()' &
trap '' TERM INT
${MARKER}`;

describeWithVms("a call that is taken back", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_TOOLS: "all" });
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  /** How much of a stubborn run is there 200 ms after its call was taken back */
  async function leftAfterCancel(): Promise<string> {
    const giveUp = new AbortController();
    const args = { command: STUBBORN, timeout_s: 600 };
    const answer = session.call("run", args, { signal: giveUp.signal });
    answer.catch(() => undefined);
    await eventually("all four sleep", 60_000, async () => {
      return (await session.run(`pgrep -fxc -- '${MARKER}'`)).stdout === "4\n";
    });
    giveUp.abort("stop");
    await expect(answer).rejects.toThrow("stop");
    return (await session.run(`sleep 0.2; pgrep -fc -- 'sleep 3141[5]'`)).stdout;
  }

  test("leaves nothing of its run after 200 ms, however it hides, and the session is idle", async () => {
    // A busy machine may be late once, but what a run may hide behind is there each time.
    const left: string[] = [];
    while (left.length < 3 && !left.includes("0\n")) left.push(await leftAfterCancel());
    expect(left).toContain("0\n");
    expect(await session.countProcesses(MARKER)).toBe(0);
    const { fields } = await server.client.callOk("list_sessions");
    expect(fields["sessions"]).toMatchObject([{ session_id: session.id, state: "ready", runs: 0 }]);
  });

  test("frees its place among the 64, over and over", async () => {
    /** Counting is a run too, which may find all places taken. */
    const count = async () => {
      const { fields } = await session.call("run", { command: "pgrep -fc -- 'sleep 2718[2]'" });
      return Number(fields["stdout"] ?? Number.NaN);
    };
    for (let round = 0; round < 3; round++) {
      const giveUp = new AbortController();
      const args = { command: "exec sleep 27182", timeout_s: 600 };
      const calls = Array.from({ length: 63 }, () => session.call("run", args, { signal: giveUp.signal }));
      const settled = Promise.allSettled(calls);
      await eventually("all of them run", 30_000, async () => (await count()) === 63);
      giveUp.abort("stop");
      expect((await settled).every(({ status }) => status === "rejected")).toBe(true);
      await eventually("all of them are gone", 30_000, async () => (await count()) === 0);
    }
  });
});

describeWithVms("progress", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_CALL_SECS: "2" });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("comes while a VM opens and while a run prints, numbered upwards, with the last line", async () => {
    const opening: string[] = [];
    const session = await server.open({ onProgress: (message) => opening.push(message) });
    expect(opening.length).toBeGreaterThan(0);
    const seen: { message: string; progress: number }[] = [];
    const startedAt = performance.now();
    const onProgress = (message: string, progress: number) => seen.push({ message, progress });
    const command = "for i in 1 2 3 4 5 6 7 8; do echo step $i; sleep 1; done";
    expect(await session.run(command, { timeout_s: 60 }, { onProgress })).toMatchObject({ exit_code: 0 });
    const messages = seen.map(({ message }) => message);
    const elapsedS = (performance.now() - startedAt) / 1000;
    const steps = [...new Set(messages.filter((message) => message.startsWith("step")))];
    expect(steps.length).toBeGreaterThanOrEqual(3);
    expect(steps).toEqual(steps.toSorted());
    expect(messages.every((message) => /^(step \d|run \(\d+ s\))$/.test(message))).toBe(true);
    const numbers = seen.map(({ progress }) => progress);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    // About one a second: never a flood, whatever the run prints.
    expect(seen.length).toBeLessThanOrEqual(elapsedS + 2);
  });

  test("quotes a hostile line without its control characters, and cut", async () => {
    const session = await server.open();
    const messages: string[] = [];
    const onProgress = (message: string) => messages.push(message);
    const command = "printf '\\033[31mred\\007\\n'; sleep 2; head -c 100000 /dev/zero | tr '\\0' x; sleep 2";
    await session.run(command, { timeout_s: 60 }, { onProgress });
    expect(messages.some((message) => message.includes("red"))).toBe(true);
    expect(messages.some((message) => message.startsWith("xxx"))).toBe(true);
    expect(messages.every((message) => message.length <= 200 && !/\p{Cc}/u.test(message))).toBe(true);
  });
});

describeWithVms("a run in the background", () => {
  test("survives the end of its call, and its cancellation afterwards is harmless", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_TOOLS: "all" });
    const session = await server.open();
    const late = new AbortController();
    const args = { command: "sleep 2; echo done", background: true };
    const { fields } = await session.call("run", args, { signal: late.signal });
    late.abort("too late");
    const { stdout, last } = await session.pollToEnd(String(fields["run_id"]));
    expect(stdout).toBe("done\n");
    expect(last).toMatchObject({ exit_code: 0, running: false });
  });

  test("keeps its session from being reaped until it ends", async () => {
    await using server = await TestServer.start({
      IGN_MCP_POOL: "0",
      IGN_MCP_TOOLS: "all",
      IGN_MCP_IDLE_SECS: "5",
    });
    const session = await server.open();
    await session.run("sleep 20", { background: true });
    await Bun.sleep(10_000);
    const { fields } = await server.client.callOk("list_sessions");
    expect(fields["sessions"]).toMatchObject([{ session_id: session.id, runs: 1 }]);
    await eventually("it is reaped after its run", 90_000, () => server.vmms().length === 0);
  });
});

describeWithVms("an agent that does not answer", () => {
  test("is given up after the run's own deadline, without a made-up exit code", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await server.open();
    const vmm = server.vmms()[0]!.pid;
    process.kill(vmm, "SIGSTOP");
    const answer = await session.call("run", { command: "true", timeout_s: 1 });
    expect(answer.isError).toBe(true);
    expect(answer.text).toStartWith("session_died:");
    expect(answer.text).toContain("the agent in its guest");
    expect(answer.fields).not.toHaveProperty("exit_code");
    expect(await session.refusal("run", { command: "true" })).toStartWith("dead_session:");
  });
});
