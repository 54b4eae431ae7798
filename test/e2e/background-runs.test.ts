import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

describeWithVms("a run that outlasts its call", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_TOOLS: "all", IGN_MCP_CALL_SECS: "2" });
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("answers early with what it printed, and polls bring the rest and the end", async () => {
    const early = await session.run("echo first; sleep 5; echo second; exit 3", { timeout_s: 60 });
    expect(early).toMatchObject({ running: true, stdout: "first\n", stderr: "", cursor: "6:0" });
    expect(early.run_id).toMatch(/^run_[a-z2-7]{8}$/);
    for (const field of ["exit_code", "timed_out", "signal"]) expect(early).not.toHaveProperty(field);
    const { stdout, last } = await session.pollToEnd(early.run_id!, early.cursor);
    expect(stdout).toBe("second\n");
    expect(last).toMatchObject({ running: false, exit_code: 3, timed_out: false, stdout_bytes: 13 });
    expect((await session.poll(early.run_id!, { wait_s: 0 })).stdout).toBe("first\nsecond\n");
  });

  test("is waited for to the end by run with its run_id", async () => {
    const early = await session.run("seq 0 20000; sleep 3; echo end", { timeout_s: 60 });
    const args = { session_id: session.id, command: "", run_id: early.run_id };
    let answer = (await server.client.callOk("run", args)).fields;
    while (answer["running"]) answer = (await server.client.callOk("run", args)).fields;
    expect(answer).toMatchObject({ exit_code: 0, stdout_truncated: true, timed_out: false });
    expect(answer["stdout"]).toStartWith("0\n1\n");
    expect(answer["stdout"]).toEndWith("20000\nend\n");
  });

  test("still ends at its timeout, and says so", async () => {
    const early = await session.run("trap '' TERM; echo on; sleep 600", { timeout_s: 4 });
    const { last } = await session.pollToEnd(early.run_id!, early.cursor);
    expect(last).toMatchObject({ running: false, exit_code: 124, timed_out: true });
  });

  test("with progress is waited for by its own call", async () => {
    const messages: string[] = [];
    const onProgress = (message: string) => messages.push(message);
    const result = await session.run("sleep 4; echo done", { timeout_s: 60 }, { onProgress });
    expect(result).toMatchObject({ stdout: "done\n", exit_code: 0 });
    expect(messages.length).toBeGreaterThanOrEqual(2);
  });

  test("that is short is not affected, and shows no path nobody needs", async () => {
    const result = await session.run("echo hi", { timeout_s: 600 });
    expect(result).toMatchObject({ stdout: "hi\n", exit_code: 0, stdout_truncated: false });
    expect(result).not.toHaveProperty("stdout_path");
    expect(result).not.toHaveProperty("run_id");
  });
});

describeWithVms("a run in the background", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_TOOLS: "all" });
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function start(command: string, args: Record<string, unknown> = {}): Promise<string> {
    const answer = await session.run(command, { background: true, ...args });
    return answer.run_id!;
  }

  test("answers at once, takes input, and ends when its input does", async () => {
    const id = await start("while read line; do echo got $line; done; echo bye");
    const one = await session.poll(id, { stdin: "one\n", wait_s: 20 });
    expect(one).toMatchObject({ running: true, stdout: "got one\n" });
    const two = await session.poll(id, { cursor: one.cursor!, stdin: "zwei ü\n", wait_s: 20 });
    expect(two.stdout).toBe("got zwei ü\n");
    await session.poll(id, { cursor: two.cursor!, stdin_eof: true });
    const { stdout, last } = await session.pollToEnd(id, two.cursor);
    expect(stdout).toBe("bye\n");
    expect(last).toMatchObject({ running: false, exit_code: 0 });
    const late = await session.refusal("poll", { run_id: id, stdin: "more" });
    expect(late).toStartWith(`stdin_closed: run ${id}`);
  });

  test("gets signals, and says which one ended it", async () => {
    const id = await start("trap 'echo caught' INT; echo ready; while :; do sleep 0.1; done");
    const ready = await session.poll(id, { wait_s: 20 });
    expect(ready.stdout).toBe("ready\n");
    const caught = await session.poll(id, { cursor: ready.cursor!, signal: "INT", wait_s: 20 });
    expect(caught).toMatchObject({ running: true, stdout: "caught\n" });
    await session.poll(id, { signal: "SIGKILL" });
    const { last } = await session.pollToEnd(id);
    expect(last).toMatchObject({ running: false, exit_code: -9, signal: "SIGKILL" });
  });

  test("loses nothing of 5 MB on one stream, nor of what comes beside it on the other", async () => {
    const id = await start("seq 0 700000; echo oops >&2", { timeout_s: 300 });
    const { stdout, last } = await session.pollToEnd(id);
    const whole = Array.from({ length: 700_001 }, (_, index) => `${index}\n`).join("");
    expect(sha256(stdout)).toBe(sha256(whole));
    expect(last.stdout_bytes).toBe(whole.length);
    expect((await session.poll(id, { wait_s: 0 })).stderr).toBe("oops\n");
  });

  test("never splits a character over two polls, and marks what is none", async () => {
    const id = await start("python3 -c \"print('日本語🚀' * 20000, end='')\"; printf 'a\\377'");
    const { stdout, last } = await session.pollToEnd(id);
    expect(stdout).toBe(`${"日本語🚀".repeat(20_000)}a\ufffd`);
    expect(last.stdout_invalid_utf8).toBe(true);
  });

  test("says how many bytes were not kept when there is no room for them", async () => {
    const id = await start("head -c 100000000 /dev/zero | tr '\\0' x; echo end", { timeout_s: 600 });
    let last = await session.poll(id, { wait_s: 20 });
    // The start is kept: skip ahead to where the file ends.
    await eventually("its end", 300_000, async () => {
      last = await session.poll(id, { cursor: "90000000:0", wait_s: 20 });
      return !last.running;
    });
    const [, bytes] = /\[\.\.\. (\d+) bytes were not kept/.exec(last.stdout) ?? [];
    expect(Number(bytes)).toBeGreaterThan(0);
    const tail = await session.poll(id, { cursor: last.cursor!, wait_s: 0 });
    expect(tail.stdout.slice(-20)).toEndWith("xxxend\n");
    expect(tail).toMatchObject({ running: false, exit_code: 0, stdout_bytes: 100_000_004 });
  }, 400_000);

  test("that cannot start says why at once", async () => {
    const message = await session.refusal("run", { command: "true", background: true, cwd: "/nowhere" });
    expect(message).toStartWith("bad_cwd:");
  });

  test("counts as use, is listed, and is told lost after a reset", async () => {
    const other = await server.open();
    const answer = await other.run("sleep 600", { background: true });
    const listed = (await server.client.callOk("list_sessions")).fields["sessions"] as Record<
      string,
      unknown
    >[];
    const summary = listed.find((entry) => entry["session_id"] === other.id);
    expect(summary).toMatchObject({ state: "ready", runs: 1, idle_s: 0 });
    expect(summary).not.toHaveProperty("closes_in_s");
    await other.reset();
    const message = await other.refusal("poll", { run_id: answer.run_id! });
    expect(message).toStartWith(`dead_run: run ${answer.run_id} is gone: its session was reset`);
    expect(await other.refusal("poll", { run_id: "run_nonsense" })).toStartWith("unknown_run:");
    await other.close();
    expect(await other.refusal("poll", { run_id: answer.run_id! })).toStartWith("dead_session:");
  });
});
