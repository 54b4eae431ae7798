import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithVms } from "../support/real-vm.ts";
import type { ToolAnswer } from "../support/stdio-client.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

const RESTART = 0x01234567;
const POWER_OFF = 0x4321fedc;

/** Ends the guest at once, as `reboot -f` and `poweroff -f` do. */
function rebootCall(how: number): string {
  return `python3 -c 'import ctypes; ctypes.CDLL(None).reboot(${how})'`;
}

describeWithVms("a session that ends says why", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  /** The answer of the run during which the session ended; later calls must tell the same cause. */
  async function expectEnd(session: TestSession, answer: ToolAnswer, cause: string): Promise<void> {
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain(session.id);
    expect(answer.text).toContain(cause);
    expect(answer.text).toContain("open_session");
    for (const tool of ["run", "reset", "close"]) {
      const later = await session.refusal(tool, tool === "run" ? { command: "true" } : {});
      expect(later).toContain("dead_session");
      expect(later).toContain(session.id);
      expect(later).toContain(cause);
    }
  }

  /** The line about it on the server's stderr */
  function endOf(session: TestSession): Record<string, unknown> | undefined {
    const lines = server.client.stderr.split("\n").filter((line) => line.startsWith("{"));
    return lines
      .map((line) => JSON.parse(line))
      .find((line) => line.event === "ended" && session.id.startsWith(line.session));
  }

  /** Starts a long run and resolves once it is under way; the answer comes when it ends. */
  async function startRun(session: TestSession): Promise<Promise<ToolAnswer>[]> {
    const answer = session.call("run", { command: "touch started; sleep 600", timeout_s: 600 });
    await session.output("while [ ! -e started ]; do sleep 0.05; done", { timeout_s: 20 });
    return [answer];
  }

  test("when its VMM is killed", async () => {
    await using lonely = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await lonely.open();
    const [answer] = await startRun(session);
    process.kill(lonely.vmms()[0]!.pid, "SIGKILL");
    await expectEnd(session, await answer!, "its VMM was killed (SIGKILL)");
    await lonely.open();
  });

  test("when its guest kernel panics", async () => {
    const session = await server.open();
    const answer = await session.call("run", { command: "echo c > /proc/sysrq-trigger", timeout_s: 60 });
    await expectEnd(session, answer, "its guest kernel panicked");
    await eventually("the server says so to a maintainer", 20_000, () => endOf(session) !== undefined);
    expect(endOf(session)).toMatchObject({ cause: "its guest kernel panicked", runs: 1 });
    expect(endOf(session)!["console"]).toContain("Kernel panic - not syncing: sysrq triggered crash");
  });

  test("when its VMM is killed, also after a program in it wrote of a panic", async () => {
    await using lonely = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await lonely.open();
    const [answer] = await startRun(session);
    await session.output("echo 'Kernel panic - not syncing: not at all' > /dev/console");
    process.kill(lonely.vmms()[0]!.pid, "SIGKILL");
    await expectEnd(session, await answer!, "its VMM was killed (SIGKILL)");
  });

  test.each([
    ["is rebooted", RESTART],
    ["is powered off", POWER_OFF],
  ])("when its guest %s from inside", async (_, how) => {
    const session = await server.open();
    const answer = await session.call("run", { command: rebootCall(how), timeout_s: 20 });
    await expectEnd(session, answer, "its guest was shut down or rebooted from inside");
  });

  test("but does not end when something in it tries to kill the agent", async () => {
    const session = await server.open();
    await session.run("kill -9 1; kill -TERM 1; kill -SEGV 1; kill -STOP 1");
    expect(await session.output("echo on")).toBe("on\n");
    await session.close();
  });

  test("when it is closed under a run", async () => {
    const session = await server.open();
    const [answer] = await startRun(session);
    await session.close();
    const ended = await answer!;
    expect(ended.isError).toBe(true);
    expect(ended.text).toContain("it was closed");
  });

  test("when it is reset under a run, which tells the run, and the session goes on", async () => {
    const session = await server.open();
    const [answer] = await startRun(session);
    await session.reset();
    const ended = await answer!;
    expect(ended.isError).toBe(true);
    expect(ended.text).toContain("was reset during this call");
    expect(await session.output("ls -A started 2>/dev/null || echo fresh")).toBe("fresh\n");
    await session.close();
  });
});

describeWithVms("a session nobody uses", () => {
  test("is closed after the idle time and says so, but never under a run", async () => {
    await using server = await TestServer.start({ IGN_MCP_IDLE_SECS: "5", IGN_MCP_POOL: "0" });
    const idle = await server.open();
    const busy = await server.open();
    const result = await busy.run("sleep 12; echo survived", { timeout_s: 60 });
    expect(result).toMatchObject({ stdout: "survived\n", exit_code: 0 });
    const message = await idle.refusal("run", { command: "true" });
    expect(message).toContain(idle.id);
    expect(message).toContain("after 5 s without use");
    await eventually("the busy one is idle now and reaped too", 60_000, () => server.vmms().length === 0);
  });
});

describeWithVms("a call the client gives up", () => {
  test("is killed in the guest, and the session stays usable", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await server.open();
    const giveUp = new AbortController();
    const command = "setsid sleep 27182 & touch started; sleep 27182";
    const answer = session.call("run", { command, timeout_s: 600 }, { signal: giveUp.signal });
    answer.catch(() => undefined);
    await session.output("while [ ! -e started ]; do sleep 0.05; done", { timeout_s: 20 });
    expect(await session.countProcesses("sleep 27182")).toBeGreaterThan(0);
    giveUp.abort("the user pressed stop");
    await expect(answer).rejects.toThrow("the user pressed stop");
    await eventually("its processes are gone", 15_000, async () => {
      return (await session.countProcesses("sleep 27182")) === 0;
    });
    expect(await session.output("echo on")).toBe("on\n");
  });
});
