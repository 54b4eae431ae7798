import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { AgentProcess, type, windowBytes } from "./agent-process.ts";
import { endRun, parse, run, startRun } from "./agent-requests.ts";
import { removeTree, writableCgroups } from "./test-cgroup.ts";

const cgroups = writableCgroups();

afterAll(async () => {
  if (cgroups) await removeTree(cgroups);
});

/** Agents number their runs from one, so each gets a cgroup of its own. */
let agentsStarted = 0;
const ownCgroup = () => `${cgroups}/agent-${++agentsStarted}`;

const waysToFindProcesses = [
  { name: "session", directory: () => undefined },
  ...(cgroups ? [{ name: "cgroup", directory: ownCgroup }] : []),
];

test("exit code, output and environment", async () => {
  await using agent = await AgentProcess.open();
  const { stdout, stderr, end } = await run(agent, "env | sort; pwd; umask; echo oops >&2; exit 3");
  expect(stdout.toString()).toBe(
    "HOME=/root\nLANG=C.UTF-8\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" +
      "PWD=/root\nTERM=dumb\n/root\n0022\n",
  );
  expect(stderr.toString()).toBe("oops\n");
  expect(end).toMatchObject({
    exit_code: 3,
    signal: null,
    timed_out: false,
    killed: false,
    oom_killed: false,
    background: 0,
    stdout_bytes: stdout.length,
    stdout_head_bytes: stdout.length,
    stdout_path: null,
    stderr_bytes: 5,
    stderr_path: null,
  });
});

test("a shell starts with default signals, its own session and only three descriptors", async () => {
  await using agent = await AgentProcess.open();
  const { stdout } = await run(
    agent,
    "grep -E '^Sig(Blk|Ign)' /proc/self/status; [ $(ps -o sid= $$) = $$ ] && echo leader; ls /proc/$$/fd",
  );
  expect(stdout.toString()).toBe("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nleader\n0\n1\n2\n");
});

test("runs are concurrent", async () => {
  await using agent = await AgentProcess.open();
  const fifo = `${agent.directory}/fifo`;
  await run(agent, `mkfifo ${fifo}`);
  const reader = startRun(agent, `cat ${fifo}`);
  const writer = startRun(agent, `echo through >${fifo}`);
  expect((await endRun(agent, writer)).end).toMatchObject({ exit_code: 0 });
  expect((await endRun(agent, reader)).stdout.toString()).toBe("through\n");
});

test("64 runs are the limit", async () => {
  await using agent = await AgentProcess.open();
  const streams = Array.from({ length: 65 }, () => startRun(agent, "read x", { stdin: "" }));
  expect((await endRun(agent, streams[64]!)).end).toMatchObject({ code: "too_many_runs" });
  for (const stream of streams.slice(0, 64)) agent.send(type.stdinEof, stream, Buffer.alloc(0));
  for (const stream of streams.slice(0, 64))
    expect((await endRun(agent, stream)).end).toMatchObject({ exit_code: 1 });
});

describe("input", () => {
  test("is /dev/null unless asked for", async () => {
    await using agent = await AgentProcess.open();
    expect((await run(agent, "readlink /proc/self/fd/0; wc -c")).stdout.toString()).toBe("/dev/null\n0\n");
  });

  test("arrives byte for byte, then ends", async () => {
    await using agent = await AgentProcess.open();
    const stdin = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    expect((await run(agent, "cat", { stdin })).stdout.equals(stdin)).toBe(true);
    expect((await run(agent, "wc -c", { stdin: "" })).stdout.toString()).toBe("0\n");
  });

  test("beyond the window waits for credit", async () => {
    await using agent = await AgentProcess.open();
    const stream = startRun(agent, "sleep 0.1; wc -c", { stdin: "" });
    const part = Buffer.alloc(windowBytes / 4, "x");
    let credit = windowBytes;
    for (let sent = 0; sent < 16; sent++) {
      while (credit < part.length) {
        const frame = await agent.next(stream);
        expect(frame.type).toBe(type.credit);
        credit += frame.payload.readUInt32LE(0);
      }
      agent.send(type.stdin, stream, part);
      credit -= part.length;
    }
    agent.send(type.stdinEof, stream, Buffer.alloc(0));
    expect((await endRun(agent, stream)).stdout.toString()).toBe(`${4 * windowBytes}\n`);
  });

  test("beyond the credit is refused", async () => {
    await using agent = await AgentProcess.open();
    const stream = startRun(agent, "sleep 1000", { stdin: "" });
    for (let sent = 0; sent < 3; sent++) agent.send(type.stdin, stream, Buffer.alloc(windowBytes / 2, "x"));
    expect((await endRun(agent, stream)).end).toMatchObject({ code: "credit_exceeded" });
  });

  test("nobody reads is thrown away", async () => {
    await using agent = await AgentProcess.open();
    const { end } = await run(agent, "exec <&-; sleep 0.1; echo done", { stdin: Buffer.alloc(900_000) });
    expect(end).toMatchObject({ exit_code: 0 });
  });
});

describe("requests", () => {
  test("a working directory that is not there", async () => {
    await using agent = await AgentProcess.open();
    expect((await run(agent, ":", { cwd: "/not/there" })).end).toMatchObject({
      code: "bad_cwd",
      errno: "ENOENT",
    });
    expect((await run(agent, ":", { cwd: "/etc/passwd" })).end).toMatchObject({
      code: "bad_cwd",
      errno: "ENOTDIR",
    });
    expect((await run(agent, "pwd", { cwd: "/usr" })).stdout.toString()).toBe("/usr\n");
  });

  test.each([131_071, 131_072, 1_048_576])("a command of %d bytes", async (length) => {
    await using agent = await AgentProcess.open();
    const start = `read x; echo $x \${#filler} $(ls /proc/self/fd | wc -l); filler=`;
    const end = `; echo \${#filler}; exit 7`;
    const command = start + "y".repeat(length - start.length - end.length) + end;
    const { stdout, end: exit } = await run(agent, command, { stdin: "in\n" });
    expect(exit).toMatchObject({ exit_code: 7 });
    // 0, 1, 2 and the directory: a long command is read from a file, which no program inherits.
    expect(stdout.toString()).toBe(`in 0 4\n${length - start.length - end.length}\n`);
  });

  test("members out of bounds", async () => {
    await using agent = await AgentProcess.open();
    const good = { command_bytes: 1, timeout_ms: 1000, max_output_bytes: 0 };
    for (const bad of [
      { command_bytes: 0 },
      { command_bytes: 1_048_577 },
      { timeout_ms: 0 },
      { timeout_ms: 86_400_001 },
      { max_output_bytes: 1_048_577 },
      { max_output_bytes: null },
      { stdin: 1 },
      { spool: 1 },
      { report_ms: 49 },
      { report_ms: 60_001 },
      { cwd: "/".repeat(5000) },
    ]) {
      const stream = agent.newStream();
      agent.send(type.run, stream, { ...good, ...bad });
      expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
    }
  });

  test("a command with a NUL byte", async () => {
    await using agent = await AgentProcess.open();
    expect((await run(agent, "echo a\0b")).end).toMatchObject({ code: "bad_request" });
  });
});

describe.each(waysToFindProcesses)("processes of a $name", ({ directory }) => {
  test("a deadline kills what ignores SIGTERM, and keeps the output", async () => {
    await using agent = await AgentProcess.open(directory());
    const { stdout, end } = await run(agent, "trap '' TERM INT HUP; echo before; while :; do sleep 1; done", {
      timeoutMs: 3000,
    });
    expect(stdout.toString()).toBe("before\n");
    expect(end).toMatchObject({ exit_code: null, signal: 9, timed_out: true, killed: false, background: 0 });
  });

  test("KILL sends any signal", async () => {
    await using agent = await AgentProcess.open(directory());
    const trapped = startRun(
      agent,
      "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done",
    );
    expect((await agent.next(trapped)).payload.toString()).toBe("ready\n");
    agent.send(type.kill, trapped, { signal: 10 });
    expect(await endRun(agent, trapped)).toMatchObject({
      end: { exit_code: 5, signal: null, killed: false },
    });
    const killed = startRun(agent, "echo ready; sleep 1000; echo not reached");
    await agent.next(killed);
    agent.send(type.kill, killed, { signal: 9 });
    expect((await endRun(agent, killed)).end).toMatchObject({ signal: 9, killed: true, timed_out: false });
  });

  test("what a killed run printed is there, and its children have no file to go on with", async () => {
    await using agent = await AgentProcess.open(directory());
    const stream = startRun(agent, "sleep 1000 & seq 5; echo ready; cat /dev/zero | tail -c 1", {
      timeoutMs: 60_000,
    });
    while (!(await agent.next(stream)).payload.toString().endsWith("ready\n"));
    agent.send(type.kill, stream, { signal: 9 });
    expect((await endRun(agent, stream)).end).toMatchObject({
      signal: 9,
      background: 0,
      stdout_bytes: 16,
      stdout_path: null,
      stderr_path: null,
    });
  });

  test("a background child holds nothing up, lives on, and its output goes to the file", async () => {
    await using agent = await AgentProcess.open(directory());
    const go = `${agent.directory}/go`;
    const { stdout, end } = await run(
      agent,
      `(while [ ! -e ${go} ]; do sleep 0.02; done; seq 100000; echo last) & echo $!`,
    );
    expect(end).toMatchObject({ exit_code: 0, timed_out: false });
    expect(end["background"] as number).toBeGreaterThanOrEqual(1);
    const path = end["stdout_path"] as string;
    expect(end["stdout_spool_complete"]).toBe(true);
    await run(agent, `: >${go}`);
    const finished = await run(
      agent,
      `while kill -0 ${stdout.toString().trim()}; do sleep 0.02; done; tail -n 1 ${path}`,
    );
    expect(finished.stdout.toString()).toBe("last\n");
    expect(readFileSync(path, "latin1").startsWith(stdout.toString())).toBe(true);
  });
});

test.if(cgroups !== undefined)(
  "with cgroups a deadline reaches grandchildren with sessions of their own",
  async () => {
    await using agent = await AgentProcess.open(ownCgroup());
    const pids = `${agent.directory}/pids`;
    const { end } = await run(
      agent,
      `setsid sh -c 'echo $$ >>${pids}; (setsid sh -c "echo \\$\\$ >>${pids}; exec sleep 1000" &) ; exec sleep 1000' & sleep 1000`,
      { timeoutMs: 3000 },
    );
    expect(end).toMatchObject({ timed_out: true, background: 0 });
    const check = `for pid in $(cat ${pids}); do while [ -e /proc/$pid ]; do sleep 0.02; done; done; wc -l <${pids}`;
    expect((await run(agent, check)).stdout.toString()).toBe("2\n");
  },
);

describe("output", () => {
  test("keeps head and tail, counts exactly, and holds the whole in a file", async () => {
    await using agent = await AgentProcess.open();
    const total = 10 * 1_048_576;
    const { stdout, end } = await run(agent, `yes 0123456789abcde | head -c ${total}; echo err >&2`, {
      maxOutputBytes: 32_768,
    });
    const path = end["stdout_path"] as string;
    expect(end).toMatchObject({
      stdout_bytes: total,
      stdout_head_bytes: 16_384,
      stdout_spool_complete: true,
      stderr_bytes: 4,
      stderr_path: null,
    });
    const whole = readFileSync(path);
    expect(whole.length).toBe(total);
    expect(stdout.equals(Buffer.concat([whole.subarray(0, 16_384), whole.subarray(total - 16_384)]))).toBe(
      true,
    );
  });

  test.each([0, 1, 7, 1000])("a limit of %d bytes is kept to", async (maxOutputBytes) => {
    await using agent = await AgentProcess.open();
    const { stdout, end } = await run(agent, "printf 0123456789", { maxOutputBytes });
    const head = Math.min(10, Math.floor(maxOutputBytes / 2));
    const tail = Math.min(10 - head, maxOutputBytes - Math.floor(maxOutputBytes / 2));
    expect(stdout.toString()).toBe("0123456789".slice(0, head) + (tail ? "0123456789".slice(-tail) : ""));
    expect(end).toMatchObject({ stdout_bytes: 10, stdout_head_bytes: head });
    if (head + tail < 10) expect(readFileSync(end["stdout_path"] as string, "latin1")).toBe("0123456789");
    else expect(end["stdout_path"]).toBeNull();
  });

  test("the head is sent while the run goes on", async () => {
    await using agent = await AgentProcess.open();
    const stream = startRun(agent, "echo first; read x; echo $x", { stdin: "" });
    expect((await agent.next(stream)).payload.toString()).toBe("first\n");
    agent.send(type.stdin, stream, Buffer.from("second\n"));
    expect((await endRun(agent, stream)).stdout.toString()).toBe("second\n");
  });
});
