import { describe, expect, test } from "bun:test";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { Message } from "../../../src/guest/agent-protocol.ts";
import { type RunCommand, startRun } from "../../../src/guest/run-handle.ts";
import type { FakeRun } from "../../fake-vmm/fake-run.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";

const NEVER = new AbortController().signal;

function command(members: Partial<RunCommand> = {}): RunCommand {
  const bytes = new TextEncoder().encode("cat");
  return { command: bytes, stdin: null, cwd: null, timeoutMs: 60_000, maxOutputBytes: 11, ...members };
}

/** A run that has started in the fake agent and waits there. */
async function started(members: Partial<RunCommand> = {}) {
  let run: FakeRun | undefined;
  const connected = await ConnectedAgent.start({
    onRunRequest: (accepted) => {
      run = accepted;
    },
    onRun: () => undefined,
  });
  const handle = startRun(connected.client, command(members), NEVER);
  await eventually("the run", () => run !== undefined);
  return { connected, handle, run: run! };
}

describe("a run under way", () => {
  test("asks for files and reports only when they are wanted", async () => {
    const { connected, run } = await started({ spool: true, reportMs: 500 });
    using _ = connected;
    expect(run.request).toMatchObject({ spool: true, report_ms: 500 });
    const plain = await started();
    using _plain = plain.connected;
    expect(Object.keys(plain.run.request)).not.toContain("spool");
    expect(Object.keys(plain.run.request)).not.toContain("report_ms");
  });

  test("shows the heads as they come, and never takes the tail for a part of them", async () => {
    const { connected, handle, run } = await started();
    using _ = connected;
    let changes = 0;
    const forget = handle.onChange(() => changes++);
    run.stdout("head");
    run.stderr("E");
    await eventually("both", () => changes === 2);
    expect(Buffer.from(handle.heads().stdout).toString()).toBe("head");
    expect(Buffer.from(handle.heads().stderr).toString()).toBe("E");
    forget();
    run.stdout("+tail!");
    run.exit({ stdout_bytes: 99, stdout_head_bytes: 5, stderr_bytes: 1, stderr_head_bytes: 1 });
    const { stdout } = await handle.ended;
    expect(Buffer.from(handle.heads().stdout).toString()).toBe("head+");
    expect(Buffer.from(stdout.tail).toString()).toBe("tail!");
    expect(changes).toBe(2);
  });

  test("keeps the latest report", async () => {
    const { connected, handle, run } = await started({ reportMs: 500 });
    using _ = connected;
    const report = { stdout_bytes: 0, stderr_bytes: 0, last_line: "", stdout_path: null, stderr_path: null };
    run.peer.sendJson(Message.REPORT, run.stream, report);
    run.peer.sendJson(Message.REPORT, run.stream, { ...report, stdout_bytes: 7, last_line: "é" });
    await eventually("the second", () => handle.latestReport?.stdout_bytes === 7);
    expect(handle.latestReport?.last_line).toBe("é");
    run.exit();
    await handle.ended;
  });

  test.each([
    ["control characters in its line", { last_line: "\u001b[31m" }],
    ["a line of no bounds", { last_line: "x".repeat(201) }],
    ["a negative count", { stdout_bytes: -1 }],
  ])("whose report has %s costs the guest its connection", async (_what, members) => {
    const { connected, handle, run } = await started({ reportMs: 500 });
    using _ = connected;
    const report = { stdout_bytes: 0, stderr_bytes: 0, last_line: "", stdout_path: null, stderr_path: null };
    run.peer.sendJson(Message.REPORT, run.stream, { ...report, ...members });
    expect((await rejection<AgentError>(handle.ended)).code).toBe("agent_invalid");
  });

  test("passes signals on while it lasts", async () => {
    const { connected, handle, run } = await started();
    using _ = connected;
    handle.kill(2);
    expect(await run.killed).toBe(2);
    run.exit({ exit_code: null, signal: 2, killed: true });
    await handle.ended;
    handle.kill(15);
    await Bun.sleep(5);
    expect(connected.agent.receivedOf(Message.KILL)).toHaveLength(1);
  });
});

describe("input that is given later", () => {
  test("arrives in order, and its end after it", async () => {
    const { connected, handle, run } = await started({ stdin: Buffer.from("a"), keepsStdinOpen: true });
    using _ = connected;
    handle.input!.write(Buffer.from("b".repeat(3_000_000)));
    handle.input!.write(Buffer.from("c"));
    handle.input!.end();
    await eventually("its end", () => connected.agent.receivedOf(Message.STDIN_EOF).length === 1);
    expect(run.stdin.equals(Buffer.from(`a${"b".repeat(3_000_000)}c`))).toBe(true);
    expect(handle.input!.unsentBytes).toBe(0);
    run.exit();
    await handle.ended;
    expect(handle.input!.isEnded).toBe(true);
  });

  test("is not there for a run on /dev/null, and ended for one that got all of it", async () => {
    const none = await started();
    using _none = none.connected;
    expect(none.handle.input).toBeNull();
    const whole = await started({ stdin: Buffer.from("all") });
    using _whole = whole.connected;
    expect(whole.handle.input!.isEnded).toBe(true);
  });

  test("that waits when the run ends is dropped", async () => {
    const { connected, handle, run } = await started({ keepsStdinOpen: true });
    using _ = connected;
    run.exit();
    await handle.ended;
    handle.input!.write(Buffer.from("late"));
    handle.input!.end();
    await Bun.sleep(5);
    expect(connected.agent.receivedOf(Message.STDIN)).toEqual([]);
    expect(connected.agent.receivedOf(Message.STDIN_EOF)).toEqual([]);
  });
});
