import { afterAll, beforeAll, expect, test } from "bun:test";
import { expectNoVms, vmsOf } from "../support/leftovers.ts";
import { readProcess } from "../support/processes.ts";
import { ProgramsWithoutBubblewrap } from "../support/programs-without-bubblewrap.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import { StdioClient } from "../support/stdio-client.ts";
import { eventually, TestServer, TestSession } from "../support/test-server.ts";

const UNTIL_TOLD = "while [ ! -e /root/enough ]; do sleep 0.05; done";

/** Longer than a refill takes, if nothing holds it */
const UNHELD_MS = 5000;
const MOST_TRIES = 10;

/** The refill that follows an open, held by a run that came at once and is still in flight. */
async function heldRefill(client: StdioClient) {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const { fields } = await client.callOk("open_session");
    const session = new TestSession(client, String(fields["session_id"]));
    const run = session.run(UNTIL_TOLD, { timeout_s: 120 });
    // The server may end before it does.
    run.catch(() => undefined);
    const pid = await standsStill(client);
    if (pid > 0) return { session, run, pid };
    // The refill was over before the run came.
    await session.writeFile("enough", "");
    await run;
    await session.close();
  }
  throw new Error(`no refill of ${MOST_TRIES} was held`);
}

/** The pid of a clone that is held; 0 when none comes to be. */
async function standsStill(client: StdioClient): Promise<number> {
  const deadline = performance.now() + UNHELD_MS;
  for (;;) {
    const held = vmsOf(client.pid).find((info) => info.state === "T");
    if (held !== undefined || performance.now() > deadline) return held?.pid ?? 0;
    await Bun.sleep(20);
  }
}

/** Opens until one gets the clone, which then ends with its session. */
async function becomesSession(server: TestServer, pid: number): Promise<void> {
  await eventually("an open takes it, and its close ends it", 60_000, async () => {
    // Opens that follow each other at once would hold it again and again.
    await Bun.sleep(500);
    const session = await server.open();
    expect(await session.output("echo here")).toBe("here\n");
    await session.close();
    return readProcess(pid) === null;
  });
  expect(server.client.stderr).not.toContain("pooled clone");
}

describeWithVms("a refill under way", () => {
  let programs: ProgramsWithoutBubblewrap;

  beforeAll(() => {
    programs = new ProgramsWithoutBubblewrap();
  });
  afterAll(() => programs[Symbol.dispose]());

  const jails: [string, () => Record<string, string>][] = [
    ["in bubblewrap", () => ({})],
    ["without bubblewrap", () => programs.env],
  ];

  test.each(jails)(
    "stands still while a call is in flight, and becomes a session later, %s",
    async (_, env) => {
      await using server = await TestServer.start(env());
      const { session, run, pid } = await heldRefill(server.client);
      await session.writeFile("enough", "");
      expect(await run).toMatchObject({ exit_code: 0 });
      await eventually("it goes on", 60_000, () => readProcess(pid)?.state !== "T");
      await becomesSession(server, pid);
    },
  );

  test("goes on at its limit though the call does too, and is none the worse for it", async () => {
    await using server = await TestServer.start();
    const { session, run, pid } = await heldRefill(server.client);
    await eventually("it goes on", 60_000, () => readProcess(pid)?.state !== "T");
    await becomesSession(server, pid);
    await session.writeFile("enough", "");
    expect(await run).toMatchObject({ exit_code: 0 });
  });

  test.each(jails)("that stands still ends with its server, %s", async (_, env) => {
    // The server's disposal ends its stdin and throws when anything is left.
    await using server = await TestServer.start(env());
    const { pid } = await heldRefill(server.client);
    expect(readProcess(pid)?.state).toBe("T");
  });

  test.each(jails)("that stands still ends with a server that is killed, %s", async (_, env) => {
    using home = new TestHome();
    await using client = await StdioClient.start({ command: EXECUTABLE_PATH, env: home.env(env()) });
    await heldRefill(client);
    const vms = vmsOf(client.pid);
    process.kill(client.pid, "SIGKILL");
    await expectNoVms(home, vms);
  });
});
