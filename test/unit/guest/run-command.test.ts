import { describe, expect, test } from "bun:test";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { INITIAL_CREDIT_BYTES, MAX_COMMAND_BYTES, Message } from "../../../src/guest/agent-protocol.ts";
import { runCommand } from "../../../src/guest/run-command.ts";
import type { RunCommand } from "../../../src/guest/run-handle.ts";
import type { FakeRun } from "../../fake-vmm/fake-run.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "./connected-agent.ts";

const NEVER = new AbortController().signal;
const MIB = 1_048_576;

function command(text: string, members: Partial<RunCommand> = {}): RunCommand {
  const bytes = new TextEncoder().encode(text);
  return { command: bytes, stdin: null, cwd: null, timeoutMs: 60_000, maxOutputBytes: 1000, ...members };
}

/** Text of a captured stream's two ends */
function ends({ head, tail }: { head: Uint8Array; tail: Uint8Array }): [string, string] {
  return [Buffer.from(head).toString(), Buffer.from(tail).toString()];
}

describe("a run", () => {
  test("carries its request and brings back its end, head and tail", async () => {
    let seen: FakeRun | undefined;
    using connected = await ConnectedAgent.start({
      onRun: (run) => {
        seen = run;
        run.stdout("head");
        run.stderr("oops");
        run.stdout("tail");
        const counts = { stdout_bytes: 100, stdout_head_bytes: 4, stderr_bytes: 4, stderr_head_bytes: 4 };
        run.exit({ exit_code: 3, ...counts, stdout_path: "/run/ignition/runs/7/stdout" });
      },
    });
    const end = await runCommand(connected.client, command("make", { cwd: "src", timeoutMs: 7 }), NEVER);
    expect(seen!.command).toBe("make");
    expect(seen!.request).toEqual({
      command_bytes: 4,
      stdin: false,
      cwd: "src",
      timeout_ms: 7,
      max_output_bytes: 1000,
    });
    expect(end.exit.exit_code).toBe(3);
    expect(ends(end.stdout)).toEqual(["head", "tail"]);
    expect(end.stdout).toMatchObject({ totalBytes: 100, path: "/run/ignition/runs/7/stdout" });
    expect(ends(end.stderr)).toEqual(["oops", ""]);
  });

  test("of the longest command is sent in frames that fit", async () => {
    let seen: FakeRun | undefined;
    using connected = await ConnectedAgent.start({
      onRun: (run) => {
        seen = run;
        run.exit();
      },
    });
    const text = "echo x;".repeat(MAX_COMMAND_BYTES / 7).padEnd(MAX_COMMAND_BYTES, " ");
    await runCommand(connected.client, command(text), NEVER);
    expect(seen!.command).toBe(text);
    expect(seen!.commandFrames).toBe(2);
  });

  test("does not disturb others at the same time", async () => {
    const waiting: FakeRun[] = [];
    using connected = await ConnectedAgent.start({ onRun: (run) => void waiting.push(run) });
    const runs = ["a", "b", "c"].map((name) => runCommand(connected.client, command(name), NEVER));
    await eventually("three runs", () => waiting.length === 3);
    for (const run of waiting.reverse()) {
      run.stdout(run.command);
      run.exit({ stdout_bytes: 1, stdout_head_bytes: 1 });
    }
    expect((await Promise.all(runs)).map((end) => ends(end.stdout)[0])).toEqual(["a", "b", "c"]);
  });

  test("that the agent refuses rejects with the refusal", async () => {
    using connected = await ConnectedAgent.start({ onRun: (run) => run.refuse("bad_cwd", "ENOENT") });
    const error = await rejection<AgentError>(runCommand(connected.client, command("x"), NEVER));
    expect(error).toMatchObject({ code: "agent_refused", refusal: "bad_cwd", errno: "ENOENT" });
  });
});

describe("stdin", () => {
  test("of many MiB arrives whole and never ahead of its credit", async () => {
    const stdin = Buffer.alloc(5 * MIB, "0123456789abcdef");
    let grantedBytes = INITIAL_CREDIT_BYTES;
    let started: FakeRun | undefined;
    const received: number[] = [];
    using connected = await ConnectedAgent.start({
      grants: false,
      onRunRequest: (run) => {
        started = run;
      },
      onRun: (run) => run.exit(),
    });
    const running = runCommand(connected.client, command("cat", { stdin }), NEVER);
    while (grantedBytes < stdin.byteLength + INITIAL_CREDIT_BYTES) {
      await eventually(
        "all the credit to be used",
        () => started !== undefined && started.stdinBytes >= Math.min(grantedBytes, stdin.byteLength),
      );
      received.push(started!.stdinBytes - Math.min(grantedBytes, stdin.byteLength));
      started!.grant(700_001);
      grantedBytes += 700_001;
    }
    await running;
    expect(received.every((excess) => excess === 0)).toBe(true);
    expect(started!.stdin.equals(stdin)).toBe(true);
  });

  test("of nothing is an end of input at once", async () => {
    using connected = await ConnectedAgent.start();
    await runCommand(connected.client, command("cat", { stdin: new Uint8Array(0) }), NEVER);
    expect(connected.agent.receivedOf(Message.STDIN)).toEqual([]);
    expect(connected.agent.receivedOf(Message.STDIN_EOF)).toHaveLength(1);
  });

  test("that the command does not read does not hold up its end", async () => {
    using connected = await ConnectedAgent.start({ grants: false, onRunRequest: (run) => run.exit() });
    const stdin = new Uint8Array(3 * MIB);
    const end = await runCommand(connected.client, command("true", { stdin }), NEVER);
    expect(end.exit.exit_code).toBe(0);
  });

  test("that the guest takes from the socket no more does not hold up its end", async () => {
    using connected = await ConnectedAgent.start({
      onRunRequest: (run) => {
        run.grant(64 * MIB);
        run.peer.stopReading();
        setTimeout(() => run.exit(), 20);
      },
    });
    const stdin = new Uint8Array(32 * MIB);
    const end = await runCommand(connected.client, command("true", { stdin }), NEVER);
    expect(end.exit.exit_code).toBe(0);
  });
});

describe("cancellation", () => {
  test("kills the run and rejects only when the agent confirmed its end", async () => {
    let started: FakeRun | undefined;
    using connected = await ConnectedAgent.start({
      onRun: (run) => {
        started = run;
      },
    });
    const caller = new AbortController();
    let isSettled = false;
    const running = runCommand(connected.client, command("sleep 9"), caller.signal).finally(() => {
      isSettled = true;
    });
    running.catch(() => undefined);
    await eventually("the run", () => started !== undefined);
    caller.abort();
    expect(await started!.killed).toBe(9);
    expect(isSettled).toBe(false);
    started!.exit({ exit_code: null, signal: 9, killed: true });
    expect((await rejection<AgentError>(running)).code).toBe("aborted");
    expect(connected.agent.connections).toBe(1);
  });

  test("before the start sends nothing", async () => {
    using connected = await ConnectedAgent.start();
    await rejection(runCommand(connected.client, command("x"), AbortSignal.abort()));
    expect(connected.agent.receivedOf(Message.RUN)).toEqual([]);
  });

  test("of a run whose connection just ended is no second failure", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const caller = new AbortController();
    const running = runCommand(connected.client, command("x"), caller.signal);
    connected.client.close();
    caller.abort();
    expect((await rejection<AgentError>(running)).code).toBe("agent_lost");
  });
});

describe("an agent that breaks the rules of a run", () => {
  test("is silent when the run's deadline and the grace are over", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const running = runCommand(connected.client, command("x", { timeoutMs: 1 }), NEVER, 20);
    expect((await rejection<AgentError>(running)).code).toBe("agent_silent");
  });

  test("is silent when it does not confirm a kill", async () => {
    using connected = await ConnectedAgent.start({ fault: "silent" });
    const caller = new AbortController();
    const running = runCommand(connected.client, command("x"), caller.signal, 20);
    caller.abort();
    expect((await rejection<AgentError>(running)).code).toBe("agent_silent");
  });

  const offences: Record<string, (run: FakeRun) => void> = {
    "more output than asked for": (run) => run.stdout("x".repeat(1001)),
    "more output than asked for in small frames": (run) => {
      for (let sent = 0; sent < 1010; sent += 10) run.stderr("0123456789");
    },
    "an EXIT that is not JSON": (run) => run.peer.sendFrame(Message.EXIT, run.stream, Buffer.from("{")),
    "an EXIT without members": (run) => run.peer.sendJson(Message.EXIT, run.stream, {}),
    "an EXIT with neither status nor signal": (run) => run.exit({ exit_code: null }),
    "an EXIT with both status and signal": (run) => run.exit({ signal: 9 }),
    "a head longer than what came": (run) => run.exit({ stdout_bytes: 5, stdout_head_bytes: 5 }),
    "a total shorter than what came": (run) => {
      run.stdout("four");
      run.exit({ stdout_bytes: 3, stdout_head_bytes: 3 });
    },
    "negative counts": (run) => run.exit({ stderr_bytes: -1 }),
    "counts beyond all numbers": (run) => run.exit({ stdout_bytes: 1e300 }),
    "a credit of three bytes": (run) => run.peer.sendFrame(Message.CREDIT, run.stream, Buffer.alloc(3)),
    "an answer of another kind": (run) => run.peer.sendJson(Message.OK, run.stream, {}),
    "an error code with spaces": (run) => run.refuse("please do this"),
  };
  test.each(Object.entries(offences))("%s costs it the connection, not us the process", async (_, offend) => {
    const losses: string[] = [];
    using connected = await ConnectedAgent.start(
      { onRun: offend },
      { onLost: (error) => void losses.push(error.code) },
    );
    const running = runCommand(connected.client, command("x"), NEVER);
    expect((await rejection<AgentError>(running)).code).toBe("agent_invalid");
    expect(losses).toEqual(["agent_invalid"]);
    await eventually("the end of the connection", () => connected.agent.connections === 0);
  });
});
