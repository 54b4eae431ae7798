import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

/** Leaves the session, the process group and the shell behind, ignores SIGTERM, and says its pid. */
const DAEMON = `
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
with open(sys.argv[1] + ".part", "w") as f: f.write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(3600)
`;

describeWithVms("a run", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    session = await server.open();
    await session.writeFile("daemon.py", DAEMON);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("has a plain environment", async () => {
    const environment = (await session.output("env")).split("\n");
    expect(environment).toContain("HOME=/root");
    expect(environment).toContain("LANG=C.UTF-8");
    expect(environment).toContain("TERM=dumb");
    const path = environment.find((line) => line.startsWith("PATH="));
    for (const directory of ["/usr/local/bin", "/usr/bin", "/bin", "/sbin"])
      expect(path).toContain(directory);
  });

  test("has the priority of any process, and is no likelier or less likely to be killed for memory", async () => {
    expect(await session.output("nice; cat /proc/self/oom_score_adj")).toBe("0\n0\n");
  });

  test("ends with its shell, and what it left in the background lives on", async () => {
    const result = await session.run(
      "{ while [ ! -e go-on ]; do sleep 0.1; done; echo later; sleep 27182; } & echo hi",
    );
    expect(result).toMatchObject({ stdout: "hi\n", exit_code: 0, stdout_truncated: false });
    await session.run("touch go-on");
    await eventually("what it prints later is in its file", 10_000, async () => {
      return (await session.output(`cat ${result.stdout_path}`)) === "hi\nlater\n";
    });
    expect(await session.countProcesses("sleep 27182")).toBe(1);
  });

  test("takes all its descendants with it at the timeout, however they hide", async () => {
    const command = "python3 daemon.py pid; setsid sh -c 'trap \"\" TERM; sleep 16180; :' & sleep 16180";
    const result = await session.run(command, { timeout_s: 5 });
    expect(result.timed_out).toBe(true);
    const pid = (await session.output("cat pid")).trim();
    expect(pid).toMatch(/^\d+$/);
    expect(await session.output(`kill -0 ${pid} 2>/dev/null && echo alive || echo gone`)).toBe("gone\n");
    expect(await session.countProcesses("sleep 16180")).toBe(0);
    expect(await session.countProcesses("daemon.py pid")).toBe(0);
  });

  test("spares the background of other runs at its timeout", async () => {
    await session.run("python3 daemon.py spared");
    await session.run("sleep 600", { timeout_s: 1 });
    expect(await session.countProcesses("daemon.py spared")).toBe(1);
  });

  test("leaves no zombies, even when its processes lost their parents", async () => {
    await session.run("for i in 1 2 3 4 5 6 7 8; do sh -c 'sleep 0.1 & exec true' & done; wait");
    const zombies = async () => (await session.output("ps -eo stat=")).match(/^Z/gm)?.length ?? 0;
    await eventually("all orphans are reaped", 10_000, async () => (await zombies()) === 0);
  });

  test("in a directory that is none is a clear error, and the session lives", async () => {
    const message = await session.refusal("run", { command: "true", cwd: "/no/such/place" });
    expect(message).toContain("/no/such/place");
    expect(message).toContain("not a directory");
    expect(await session.refusal("run", { command: "true", cwd: "/etc/passwd" })).toContain("/etc/passwd");
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("overlaps with other runs of its session", async () => {
    const meet = (mine: string, other: string) =>
      session.run(`touch ${mine}; while [ ! -e ${other} ]; do sleep 0.05; done; echo met`, { timeout_s: 20 });
    const results = await Promise.all([meet("left", "right"), meet("right", "left")]);
    for (const result of results) expect(result).toMatchObject({ stdout: "met\n", timed_out: false });
  });

  test("that eats all memory is killed, and the session lives", async () => {
    await session.writeFile("eat.py", "eaten = []\nwhile True: eaten.append(bytearray(1 << 20))\n");
    const result = await session.run("exec python3 eat.py", { timeout_s: 60 });
    expect(result).toMatchObject({ exit_code: -9, signal: "SIGKILL", timed_out: false });
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("that forks without end is over at its timeout, and the session lives", async () => {
    const result = await session.run(": forkbomb; bomb() { bomb | bomb & }; bomb; sleep 600", {
      timeout_s: 2,
    });
    expect(result.timed_out).toBe(true);
    await eventually("its processes are gone", 20_000, async () => {
      return (await session.countProcesses("forkbomb")) === 0;
    });
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("has a cgroup of its own", async () => {
    const groups = await Promise.all([1, 2].map(() => session.output("cat /proc/self/cgroup")));
    expect(groups[0]).toMatch(/^0::\/.+/);
    expect(groups[0]).not.toBe(groups[1]);
  });

  test("can be one of 64 at once, each with its own answer", async () => {
    const numbers = Array.from({ length: 64 }, (_, index) => index);
    const results = await Promise.all(numbers.map((number) => session.output(`echo ${number}`)));
    expect(results).toEqual(numbers.map((number) => `${number}\n`));
  });
});
