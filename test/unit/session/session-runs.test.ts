import { describe, expect, test } from "bun:test";
import { AgentError } from "../../../src/guest/agent-error.ts";
import type { PolledRun, PollRequest, RunResult } from "../../../src/session/run-contract.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import { rejection } from "../../support/rejection.ts";
import { commandEnd, type FakeRunHandle } from "./fake-vm-source.ts";
import { CALL, openTable, runRequest } from "./open-table.ts";

const LONG = { timeoutMs: 60_000 };

async function opened(callMs = 0) {
  const { table, source } = openTable({ callMs });
  const { sessionId } = await table.open(CALL);
  return { table, sessionId, vm: source.lastVm, source };
}
type Opened = Awaited<ReturnType<typeof opened>>;

function poll({ table, sessionId }: Opened, runId: string, request: Partial<PollRequest> = {}) {
  const nothing = { cursor: null, waitMs: 0, stdin: null, endsInput: false, signal: null };
  return table.poll(sessionId, runId, { ...nothing, ...request }, CALL);
}

async function inBackground(session: Opened): Promise<{ runId: string; run: FakeRunHandle }> {
  const starting = session.table.run(
    session.sessionId,
    runRequest("x", { isBackground: true, ...LONG }),
    CALL,
  );
  const run = session.vm.runs.at(-1)!;
  await Bun.sleep(0); // the guest's answer never comes in the turn of the request
  run.report({});
  return { runId: ((await starting) as PolledRun).runId, run };
}

describe("a run that ends within its call", () => {
  test("asks for nothing it does not need", async () => {
    const { table, sessionId, vm } = await opened(50_000);
    const running = table.run(sessionId, runRequest("x"), CALL);
    const { command, end } = vm.runs[0]!;
    expect(command).not.toHaveProperty("spool");
    expect(command).not.toHaveProperty("reportMs");
    end.resolve(commandEnd({}, "out"));
    expect((await running) as RunResult).toMatchObject({ stdout: "out", exitCode: 0 });
  });

  test("tells the last line it printed to whoever listens, and stays with its call", async () => {
    const { table, sessionId, vm } = await opened(5);
    const lines: string[] = [];
    const call = { ...CALL, progress: () => undefined, quote: (line: string) => void lines.push(line) };
    const running = table.run(sessionId, runRequest("x", LONG), call);
    const run = vm.runs[0]!;
    expect(run.command.reportMs).toBe(500);
    expect(run.command).not.toHaveProperty("spool");
    await Bun.sleep(0);
    run.report({ last_line: "" });
    run.report({ last_line: "making" });
    await Bun.sleep(20);
    run.end.resolve(commandEnd());
    expect(await running).toMatchObject({ exitCode: 0 });
    expect(lines).toEqual(["making"]);
  });

  test("may outlive it, and then is as any other", async () => {
    const { table, sessionId, vm } = await opened(50_000);
    const running = table.run(sessionId, runRequest("x", LONG), CALL);
    expect(vm.runs[0]!.command).toMatchObject({ spool: true, reportMs: 500 });
    vm.runs[0]!.end.resolve(commandEnd({ exit_code: 3 }));
    expect(await running).toMatchObject({ exitCode: 3 });
    expect(table.list()[0]).toMatchObject({ runs: 0 });
  });
});

describe("a run that outlasts its call", () => {
  async function outlasting(session: Opened): Promise<{ early: PolledRun; run: FakeRunHandle }> {
    const running = session.table.run(session.sessionId, runRequest("x", LONG), CALL);
    const run = session.vm.runs.at(-1)!;
    run.print("so far", "oops");
    return { early: (await running) as PolledRun, run };
  }

  test("is answered with what it printed and no end, and keeps its session busy", async () => {
    const session = await opened(5);
    const { early } = await outlasting(session);
    expect(early).toMatchObject({
      end: null,
      stdout: "so far",
      stderr: "oops",
      cursor: "6:4",
      hasMore: false,
    });
    expect(session.table.list()[0]).toMatchObject({ runs: 1, idleMs: 0, closesInMs: null });
  });

  test("is waited for with its id, again and again, to its whole result", async () => {
    const { table, sessionId, ...rest } = await opened(5);
    const { early, run } = await outlasting({ table, sessionId, ...rest });
    expect(await table.awaitRun(sessionId, early.runId, CALL)).toMatchObject({ end: null, stdout: "so far" });
    run.end.resolve(commandEnd({ exit_code: 7 }, "so far and further"));
    const result = { exitCode: 7, stdout: "so far and further" };
    expect(await table.awaitRun(sessionId, early.runId, CALL)).toMatchObject(result);
    expect(await table.awaitRun(sessionId, early.runId, CALL)).toMatchObject(result);
  });

  test("is killed when the call that waits for it is cancelled, and not by the one that was answered", async () => {
    const session = await opened(5);
    const first = new AbortController();
    const call = { signal: first.signal };
    const running = session.table.run(session.sessionId, runRequest("x", LONG), call);
    const { runId } = (await running) as PolledRun;
    first.abort();
    const run = session.vm.runs[0]!;
    expect(run.signal.aborted).toBe(false);
    const second = new AbortController();
    const waiting = session.table.awaitRun(session.sessionId, runId, { signal: second.signal });
    second.abort();
    expect((await rejection<SessionError>(waiting)).code).toBe("cancelled");
    expect(run.signal.aborted).toBe(true);
  });

  test("takes no input", async () => {
    const session = await opened(5);
    const { early } = await outlasting(session);
    const polling = poll(session, early.runId, { stdin: Buffer.from("x") });
    expect((await rejection<SessionError>(polling)).code).toBe("stdin_closed");
  });
});

describe("a run in the background", () => {
  test("is answered when the guest has it, with open input", async () => {
    const session = await opened();
    const { run } = await inBackground(session);
    expect(run.command).toMatchObject({ spool: true, keepsStdinOpen: true });
    expect(run.input!.isEnded).toBe(false);
  });

  test("that the guest refuses is refused at once", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onRun = () => Promise.reject(new AgentError("agent_refused", "x", { refusal: "bad_cwd" }));
    const running = table.run(sessionId, runRequest("x", { isBackground: true }), CALL);
    expect((await rejection<SessionError>(running)).code).toBe("bad_cwd");
  });

  test("that is cancelled before its id is known is killed", async () => {
    const { table, sessionId, vm } = await opened();
    const caller = new AbortController();
    const running = table.run(sessionId, runRequest("x", { isBackground: true }), { signal: caller.signal });
    caller.abort();
    expect((await rejection<SessionError>(running)).code).toBe("cancelled");
    expect(vm.runs[0]!.signal.aborted).toBe(true);
  });

  test("wakes a poll with its output, and with its end", async () => {
    const session = await opened();
    const { runId, run } = await inBackground(session);
    const first = poll(session, runId, { waitMs: 60_000 });
    run.print("one\n");
    expect(await first).toMatchObject({ stdout: "one\n", cursor: "4:0", end: null });
    const second = poll(session, runId, { cursor: "4:0", waitMs: 60_000 });
    run.report({ stdout_bytes: 4 });
    run.end.resolve(commandEnd({ exit_code: 5 }, "one\n"));
    expect(await second).toMatchObject({ stdout: "", end: { exitCode: 5 }, hasMore: false });
  });

  test("reads on from its file behind what is in memory, and says that there is more", async () => {
    const session = await opened();
    const { runId, run } = await inBackground(session);
    const whole = "x".repeat(50_000);
    session.vm.files.set("/run/out", Buffer.from(whole));
    run.print(whole.slice(0, 10));
    run.report({ stdout_bytes: 50_000, stdout_path: "/run/out" });
    const first = await poll(session, runId, {});
    expect(first).toMatchObject({ stdout: whole.slice(0, 10), hasMore: true });
    const second = await poll(session, runId, { cursor: first.cursor });
    expect(second).toMatchObject({ cursor: "32778:0", hasMore: true, stdoutBytes: 50_000 });
    expect(await poll(session, runId, { cursor: second.cursor })).toMatchObject({ hasMore: false });
  });

  test("gets input and signals", async () => {
    const session = await opened();
    const { runId, run } = await inBackground(session);
    await poll(session, runId, { stdin: Buffer.from("a"), signal: 2 });
    await poll(session, runId, { stdin: Buffer.from("b"), endsInput: true });
    expect(run.written).toEqual(["a", "b"]);
    expect(run.killedWith).toEqual([2]);
    const late = poll(session, runId, { stdin: Buffer.from("c") });
    expect((await rejection<SessionError>(late)).code).toBe("stdin_closed");
  });

  test("that does not read its input is not given more than 32 MiB of it", async () => {
    const session = await opened();
    const { runId, run } = await inBackground(session);
    Object.assign(run.input!, { unsentBytes: 33_554_432 });
    const error = await rejection<SessionError>(poll(session, runId, { stdin: Buffer.from("x") }));
    expect(error.code).toBe("stdin_full");
  });

  test("is lost with a reset, which its id says, and unknown elsewhere", async () => {
    const session = await opened();
    const { runId } = await inBackground(session);
    const polling = poll(session, runId, { waitMs: 60_000 });
    polling.catch(() => undefined);
    await session.table.reset(session.sessionId, CALL);
    expect((await rejection<SessionError>(polling)).message).toContain("was reset during this call");
    const lost = await rejection<SessionError>(poll(session, runId));
    expect(lost.code).toBe("dead_run");
    expect(lost.message).toBe(`run ${runId} is gone: its session was reset. Start it again with run.`);
    const { sessionId } = await session.table.open(CALL);
    const elsewhere = await rejection<SessionError>(poll({ ...session, sessionId }, runId));
    expect(elsewhere.code).toBe("unknown_run");
    expect(session.table.list().map(({ runs }) => runs)).toEqual([0, 0]);
  });

  test("does not take a cursor nobody gave out", async () => {
    const session = await opened();
    const { runId } = await inBackground(session);
    const error = await rejection<SessionError>(poll(session, runId, { cursor: "1:2:3" }));
    expect(error.code).toBe("bad_cursor");
  });

  test("takes no end of an input it never had", async () => {
    const session = await opened(5);
    const running = session.table.run(session.sessionId, runRequest("x", LONG), CALL);
    const { runId } = (await running) as PolledRun;
    const error = await rejection<SessionError>(poll(session, runId, { endsInput: true }));
    expect(error.code).toBe("stdin_closed");
  });

  test("keeps its end when newer ones take the place of its output, which its file still has", async () => {
    const session = await opened();
    const first = await inBackground(session);
    const { files } = session.vm;
    files.set("/run/out", new TextEncoder().encode("whole"));
    const { stdout, ...rest } = commandEnd({ exit_code: 7 }, "whole");
    first.run.end.resolve({ ...rest, stdout: { ...stdout, path: "/run/out", isPathWhole: true } });
    for (let count = 0; count < 65; count++) {
      const { runId, run } = await inBackground(session);
      run.end.resolve(commandEnd());
      await poll(session, runId, { waitMs: 1000 });
    }
    expect(await poll(session, first.runId)).toMatchObject({ stdout: "whole", end: { exitCode: 7 } });
    expect(await session.table.awaitRun(session.sessionId, first.runId, CALL)).toMatchObject({
      stdout: "\n[... 5 bytes omitted; all of it is in /run/out ...]\n",
      stdoutPath: "/run/out",
      exitCode: 7,
    });
    files.clear();
    expect(await poll(session, first.runId)).toMatchObject({
      stdout: "\n[... 5 bytes were not kept for want of room in the session ...]\n",
      end: { exitCode: 7 },
    });
  });

  test("keeps its end when those that end after it print more than is kept", async () => {
    const session = await opened();
    const runs: Awaited<ReturnType<typeof inBackground>>[] = [];
    for (let count = 0; count < 9; count++) runs.push(await inBackground(session));
    const mebibyte = "x".repeat(1_048_576);
    for (const { run } of runs) run.end.resolve(commandEnd({ exit_code: 7 }, mebibyte, mebibyte));
    await Bun.sleep(0);
    const [first, second] = runs as [(typeof runs)[0], (typeof runs)[0]];
    const polled = await poll(session, first.runId);
    expect(polled).toMatchObject({ end: { exitCode: 7 }, stdoutBytes: 1_048_576 });
    expect(polled.stdout).toContain("1048576 bytes were not kept");
    expect((await poll(session, second.runId)).stdout).toStartWith("xxx");
  });

  test("is forgotten when thousands have ended after it", async () => {
    const session = await opened();
    const first = await inBackground(session);
    first.run.end.resolve(commandEnd());
    for (let count = 0; count < 4096; count++) (await inBackground(session)).run.end.resolve(commandEnd());
    await Bun.sleep(0);
    const error = await rejection<SessionError>(poll(session, first.runId));
    expect(error.code).toBe("dead_run");
    expect(error.message).toContain("it had ended, and 4096 newer ones after it");
  });
});
