import { afterAll, beforeAll, expect, test } from "bun:test";
import { sha256OfFile } from "../../src/base/file-hash.ts";
import { type Checkpoint, checkpoint, countOf, ForkingHome, fork, startCounter } from "../support/forks.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, type TestServer, type TestSession } from "../support/test-server.ts";

const FORKS = 4;
const MAX_CLOCK_ERROR_S = 1;
const COUNT = "/root/count";

/** The guest looks at its clock some time between the call and its answer. */
async function expectRightTime(session: TestSession): Promise<void> {
  const before = Date.now() / 1000;
  const guest = Number(await session.output("date +%s.%N"));
  expect(guest).toBeGreaterThan(before - MAX_CLOCK_ERROR_S);
  expect(guest).toBeLessThan(Date.now() / 1000 + MAX_CLOCK_ERROR_S);
}

describeWithVms("forks of one checkpoint", () => {
  let home: ForkingHome;
  let server: TestServer;
  let parent: TestSession;
  let taken: Checkpoint;
  /** The parent's count right before and right after the checkpoint */
  let between: [number, number];
  let baseHash: string;
  let forks: TestSession[];
  /** The very first output of each fork */
  let random: string[];

  beforeAll(async () => {
    home = new ForkingHome();
    baseHash = await sha256OfFile(home.store.file("memory.bin"));
    server = await home.start();
    parent = await server.open();
    await startCounter(parent, COUNT);
    await parent.output("echo kept >/root/file; echo temporary >/tmp/file; mkfifo /tmp/pipe");
    await eventually("counting", 10_000, async () => (await countOf(parent, COUNT)) > 3);
    const before = await countOf(parent, COUNT);
    taken = await checkpoint(server, parent);
    between = [before, await countOf(parent, COUNT)];
    forks = [];
    random = [];
    for (let i = 0; i < FORKS; i++) {
      const forked = await fork(server, taken.checkpoint_id);
      forks.push(forked);
      random.push(await forked.output("od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n'"));
    }
  });
  afterAll(() => home[Symbol.asyncDispose]());

  const fromAll = (command: string) => Promise.all([parent, ...forks].map((each) => each.output(command)));

  test("tell what they cost", () => {
    expect(taken.checkpoint_id).toMatch(/^chk_[a-z2-7]{26}$/);
    expect(taken.bytes_written).toBeGreaterThan(100_000);
    expect(taken.paused_ms).toBeGreaterThan(0);
  });

  test("have the parent's files, in memory and on its overlay", async () => {
    for (const output of await fromAll("cat /root/file /tmp/file; test -p /tmp/pipe && echo pipe"))
      expect(output).toBe("kept\ntemporary\npipe\n");
  });

  test("go on with its processes from where it stood, as it does itself", async () => {
    const fresh = await fork(server, taken.checkpoint_id);
    const first = await countOf(fresh, COUNT);
    expect(first).toBeGreaterThanOrEqual(between[0]);
    // Far below the parent, which has counted on through all the forks before.
    expect(first).toBeLessThan(await countOf(parent, COUNT));
    for (const session of [parent, fresh]) {
      const seen = await countOf(session, COUNT);
      await eventually("counting on", 10_000, async () => (await countOf(session, COUNT)) > seen + 3);
    }
    await fresh.close();
  });

  test("go their own ways", async () => {
    await Promise.all(forks.map((each, index) => each.output(`echo ${index} >/root/mine; rm /tmp/file`)));
    for (const [index, each] of forks.entries())
      expect(await each.output("cat /root/mine; ls /tmp")).toBe(`${index}\npipe\n`);
    expect(await parent.output("cat /tmp/file; ls /root")).not.toContain("mine");
  });

  test("have randomness, names and the time of their own", async () => {
    expect(new Set(random).size).toBe(FORKS);
    for (const command of ["hostname", "cat /etc/machine-id", "cat /proc/sys/kernel/random/uuid"])
      expect(new Set(await fromAll(command)).size).toBe(FORKS + 1);
    for (const session of [parent, ...forks]) await expectRightTime(session);
  });

  test("can be checkpointed and forked again", async () => {
    const [second] = forks;
    await second!.output("echo grandchild >/root/generation");
    const again = await checkpoint(server, second!);
    const grandchild = await fork(server, again.checkpoint_id);
    expect(await grandchild.output("cat /root/generation /root/file")).toBe("grandchild\nkept\n");
    const seen = await countOf(grandchild, COUNT);
    await eventually("counting on", 10_000, async () => (await countOf(grandchild, COUNT)) > seen);
    await grandchild.close();
  });

  test("change neither the base nor the checkpoint", async () => {
    expect(await sha256OfFile(home.store.file("memory.bin"))).toBe(baseHash);
    const manifest = await Bun.file(home.store.file("manifest.json", taken.checkpoint_id)).json();
    expect(manifest).toMatchObject({ kind: "checkpoint", parent: { name: "tools-base" } });
    for (const name of ["memory", "state"]) {
      const path = home.store.file(`${name}.bin`, taken.checkpoint_id);
      expect(await sha256OfFile(path)).toBe(manifest.files[name].sha256);
    }
  });
});

describeWithVms("a checkpoint while calls are in flight", () => {
  let home: ForkingHome;
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    home = new ForkingHome();
    server = await home.start({ IGN_MCP_CALL_SECS: "0" });
    session = await server.open();
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test("does not disturb a run, which lives on in the fork with its output in a file", async () => {
    const running = session.run(
      "for i in $(seq 1 60); do echo line $i; sleep 0.05; done; while [ ! -e /root/go ]; do sleep 0.05; done; echo the end; touch /root/over",
      { timeout_s: 100 },
    );
    await eventually("the run", 10_000, async () => (await session.countProcesses("seq 1 60")) > 0);
    const { checkpoint_id } = await checkpoint(server, session);
    const forked = await fork(server, checkpoint_id);
    for (const each of [session, forked])
      expect(await each.output("test ! -e /root/over && touch /root/go && echo not yet")).toBe("not yet\n");
    expect((await running).stdout).toEndWith("line 60\nthe end\n");
    await eventually(
      "its end in the fork",
      60_000,
      async () => (await forked.run("ls /root/over")).exit_code === 0,
    );
    const output = await forked.output("cat /run/ignition/runs/*/stdout");
    expect(output).toStartWith("line 1\nline 2\n");
    expect(output).toEndWith("line 60\nthe end\n");
    await forked.close();
  });

  test("under a flood of output loses and mixes nothing, here or there", async () => {
    const running = session.run("while [ ! -e /tmp/stop ]; do seq 1 1000; done; echo over", {
      timeout_s: 60,
    });
    await Bun.sleep(500);
    const taken = await Promise.all([1, 2].map(() => checkpoint(server, session)));
    for (const { checkpoint_id } of taken) {
      const forked = await fork(server, checkpoint_id);
      expect(await forked.output("echo answer")).toBe("answer\n");
      await forked.close();
    }
    await session.output("touch /tmp/stop");
    const { stdout, exit_code } = await running;
    expect(exit_code).toBe(0);
    expect(stdout).toStartWith("1\n2\n3\n");
    expect(stdout).toEndWith("999\n1000\nover\n");
  });

  test("takes a half-written file as not written", async () => {
    const contents = ["a", "b"].map((letter) => Buffer.alloc(12 * 1_048_576, letter));
    const hashes = contents.map((bytes) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex"));
    await session.writeFile("/root/large", contents[0]!);
    let isTaken = false;
    const writing = (async () => {
      for (let round = 1; !isTaken; round++) await session.writeFile("/root/large", contents[round % 2]!);
    })();
    const { checkpoint_id } = await checkpoint(server, session).finally(() => {
      isTaken = true;
    });
    await writing;
    const forked = await fork(server, checkpoint_id);
    for (const each of [forked, session]) {
      expect(hashes).toContain(await each.sha256Of("/root/large"));
      expect(await each.output("find / -xdev -name '*ignition-put*'")).toBe("");
    }
    await forked.close();
  });

  test("keeps the parent's clock right", async () => {
    for (let i = 0; i < 3; i++) await checkpoint(server, session);
    await expectRightTime(session);
  });
});
