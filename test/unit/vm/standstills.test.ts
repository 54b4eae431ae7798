import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { Message } from "../../../src/guest/agent-protocol.ts";
import type { RunningMachine } from "../../../src/vm/running-machine.ts";
import { continueMachine, stopMachine } from "../../../src/vm/stop-machine.ts";
import type { Vm } from "../../../src/vm/vm.ts";
import { VM_DEADLINES } from "../../../src/vm/vm-deadlines.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { ConnectedAgent } from "../guest/connected-agent.ts";
import { FakeMachine } from "./fake-machine.ts";

const NEVER = new AbortController().signal;
const SHORT = { ...VM_DEADLINES, exitGraceMs: 20, transferMs: 20 };
/** Many times the short deadlines */
const LONG_MS = 300;

const run = (vm: Vm, text: string, signal = NEVER) =>
  vm.startRun(
    {
      command: new TextEncoder().encode(text),
      stdin: null,
      cwd: null,
      timeoutMs: 60_000,
      maxOutputBytes: 10_000,
    },
    signal,
  ).ended;

async function qmpHistoryOf(vm: Vm): Promise<string[]> {
  const { stdout } = await run(vm, "history");
  return JSON.parse(Buffer.from(stdout.head).toString()).qmp;
}

/** Awake, with deadlines that pass at once. */
async function hasty(machine: FakeMachine): Promise<Vm> {
  const vm = await machine.startVm({}, undefined, SHORT);
  await vm.awaken(NEVER);
  return vm;
}

afterEach(() => {
  setSystemTime();
});

describe("a VM that is paused", () => {
  test("does not die of what it owes meanwhile, and a kill's grace counts from the resume on", async () => {
    using machine = new FakeMachine();
    await using vm = await hasty(machine);
    let hasDied = false;
    void vm.died.then(() => {
      hasDied = true;
    });
    const caller = new AbortController();
    const killed = rejection<AgentError>(run(vm, "hang", caller.signal));
    await run(vm, "arm silent");
    await vm.pause();
    caller.abort();
    const reading = rejection<AgentError>(vm.getFile("/f", { offset: 0, bytes: 1, limitBytes: 1 }, NEVER));
    await Bun.sleep(LONG_MS);
    expect(hasDied).toBe(false);
    // This agent never answers: all that was still owed is late in the end.
    const resuming = rejection(vm.resume());
    expect((await killed).code).toBe("agent_silent");
    expect((await reading).code).toBe("agent_silent");
    expect(await vm.died).toEqual({ kind: "agent_silent" });
    await vm[Symbol.asyncDispose]();
    await resuming;
  });

  test("takes calls, whose callers may give up", async () => {
    using machine = new FakeMachine();
    await using vm = await hasty(machine);
    await run(vm, "arm silent");
    await vm.pause();
    const caller = new AbortController();
    const reading = rejection<AgentError>(
      vm.getFile("/f", { offset: 0, bytes: 1, limitBytes: 1 }, caller.signal),
    );
    caller.abort();
    expect((await reading).code).toBe("aborted");
  });

  test("is not copied, and is after its resume", async () => {
    using machine = new FakeMachine();
    await using vm = await hasty(machine);
    await vm.pause();
    await vm.pause();
    const refused = await rejection<VmError>(vm.copy(async () => "copied", NEVER));
    expect([refused.code, refused.message]).toEqual(["paused", "the VM is paused; resume it first"]);
    await vm.resume();
    expect(await vm.copy(async () => "copied", NEVER)).toBe("copied");
    expect(await qmpHistoryOf(vm)).toEqual(["qmp_capabilities", "cont", "stop", "cont"]);
  });
});

describe("copies and pauses", () => {
  test("wait for one another, so that a pause is not undone by the end of a copy", async () => {
    using machine = new FakeMachine();
    await using vm = await hasty(machine);
    const steps: string[] = [];
    const copying = vm.copy(async (running) => {
      await stopMachine(running);
      await Bun.sleep(20);
      await continueMachine(running);
      steps.push("copied");
    }, NEVER);
    const pausing = vm.pause().then(() => steps.push("paused"));
    await Promise.all([copying, pausing]);
    expect(steps).toEqual(["copied", "paused"]);
    await vm.resume();
    const history = ["qmp_capabilities", "cont", "stop", "cont", "stop", "cont"];
    expect(await qmpHistoryOf(vm)).toEqual(history);
  });

  test("a copy that is to leave it still does, and lets it go on when it fails", async () => {
    using machine = new FakeMachine();
    await using vm = await hasty(machine);
    const fails = async (running: RunningMachine) => {
      await stopMachine(running);
      throw new Error("the disk is full");
    };
    expect((await rejection(vm.copy(fails, NEVER, true))).message).toBe("the disk is full");
    expect(await qmpHistoryOf(vm)).toEqual(["qmp_capabilities", "cont", "stop", "cont"]);
    await vm.copy((running) => (running.staysStill ? stopMachine(running) : Promise.reject()), NEVER, true);
    expect((await rejection<VmError>(vm.copy(async () => undefined, NEVER))).code).toBe("paused");
  });
});

test("a guest is told how long it stood still, in parts of at most an hour", async () => {
  using connected = await ConnectedAgent.start();
  const said: string[] = [];
  const qmp = { execute: async (command: string) => said.push(command) } as unknown as RunningMachine["qmp"];
  const machine = { agent: connected.client, qmp };
  setSystemTime(new Date("2026-01-01T00:00:00Z"));
  await stopMachine(machine);
  setSystemTime(new Date("2026-01-01T02:00:01Z"));
  await continueMachine(machine);
  expect(said).toEqual(["stop", "cont"]);
  const told = connected.agent.receivedOf(Message.RELEASE);
  const parts = told.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()).paused_us);
  expect(parts).toEqual([3_600_000_000, 3_600_000_000, 1_000_000]);
});

test("a machine that QEMU does not stop keeps its deadlines", async () => {
  using connected = await ConnectedAgent.start();
  const qmp = { execute: () => Promise.reject(new Error("no")) } as unknown as RunningMachine["qmp"];
  expect((await rejection(stopMachine({ agent: connected.client, qmp }))).message).toBe("no");
  expect(connected.client.time.isStopped).toBe(false);
});
