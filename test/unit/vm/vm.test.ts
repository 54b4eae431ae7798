import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import type { AgentError } from "../../../src/guest/agent-error.ts";
import { Message } from "../../../src/guest/agent-protocol.ts";
import type { RunCommand } from "../../../src/guest/run-handle.ts";
import { Activity } from "../../../src/vm/activity.ts";
import type { Vm } from "../../../src/vm/vm.ts";
import type { VmDeath } from "../../../src/vm/vm-death.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { eventually } from "../../support/eventually.ts";
import { readProcess } from "../../support/processes.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeMachine } from "./fake-machine.ts";

const NEVER = new AbortController().signal;

function command(text: string): RunCommand {
  const bytes = new TextEncoder().encode(text);
  return { command: bytes, stdin: null, cwd: null, timeoutMs: 60_000, maxOutputBytes: 10_000 };
}

async function awake(machine: FakeMachine) {
  const vm = await machine.startVm();
  await vm.awaken(NEVER);
  return vm;
}

describe("waking", () => {
  test("lets the machine go on, tells it who it is, and only then probes it", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    const { stdout } = await vm.startRun(command("history"), NEVER).ended;
    const { qmp, received } = JSON.parse(Buffer.from(stdout.head).toString());
    expect(qmp).toEqual(["qmp_capabilities", "cont"]);
    const { HELLO, CLONED, PROBE, RUN, COMMAND } = Message;
    expect(received).toEqual([HELLO, CLONED, PROBE, RUN, COMMAND]);
  });

  test("after an exercise and a pause tells it again, over the same connection", async () => {
    using machine = new FakeMachine();
    await using vm = await machine.startVm();
    await vm.exerciseAndPause(NEVER);
    await vm.awaken(NEVER);
    const { stdout } = await vm.startRun(command("history"), NEVER).ended;
    const { qmp, received } = JSON.parse(Buffer.from(stdout.head).toString());
    expect(qmp).toEqual(["qmp_capabilities", "cont", "stop", "cont"]);
    const count = (type: number) => received.filter((each: number) => each === type).length;
    const { HELLO, CLONED, PROBE, RUN } = Message;
    expect([HELLO, CLONED, PROBE, RUN].map(count)).toEqual([1, 2, 2, 1]);
  });

  test("refuses an agent of another build than the base's", async () => {
    using machine = new FakeMachine();
    await using vm = await machine.startVm({ build: "0dd" });
    const error = await rejection<AgentError>(vm.awaken(NEVER));
    expect(error.code).toBe("agent_mismatch");
    expect(error.message).toContain("is build 0dd, the base says b0; rebuild the base");
  });

  test("refuses a machine whose probe fails", async () => {
    using machine = new FakeMachine();
    await using vm = await machine.startVm({ refusesProbe: true });
    const error = await rejection<VmError>(vm.awaken(NEVER));
    expect(error.code).toBe("clone_failed");
    expect(error.message).toContain("cannot start a program (EAGAIN)");
  });

  const runsSeen = async (vm: Vm) => {
    const { stdout } = await vm.startRun(command("history"), NEVER).ended;
    const { received } = JSON.parse(Buffer.from(stdout.head).toString());
    return received.filter((type: number) => type === Message.RUN).length;
  };

  test("is followed by a run that does nothing, for the translator, when no other comes first", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    const activity = new Activity();
    vm.countCallsIn(activity);
    const exercised = Promise.withResolvers<void>();
    let hasBegun = false;
    using _watch = activity.watch((isBusy) => {
      if (isBusy) hasBegun = true;
      else if (hasBegun) exercised.resolve();
    });
    vm.exerciseSoon();
    await exercised.promise;
    expect(await runsSeen(vm)).toBe(2);
  });

  test("is followed by no other run where one comes first, and not after its end", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    vm.exerciseSoon();
    expect(await runsSeen(vm)).toBe(1);
    await Bun.sleep(100);
    expect(await runsSeen(vm)).toBe(2);
    vm.exerciseSoon();
    await vm[Symbol.asyncDispose]();
  });

  test("ends when the caller gives up, and the machine's end afterwards is no second failure", async () => {
    using machine = new FakeMachine();
    const vm = await machine.startVm({ fault: "no_ok", unanswered: ["cont"] });
    const caller = new AbortController();
    const waking = rejection<AgentError>(vm.awaken(caller.signal));
    await Bun.sleep(5);
    caller.abort();
    expect((await waking).code).toBe("aborted");
    await vm[Symbol.asyncDispose]();
  });
});

describe("a VM", () => {
  test("that is not awake, or was ended, takes no calls", async () => {
    using machine = new FakeMachine();
    const vm = await machine.startVm();
    expect(() => vm.startRun(command("x"), NEVER)).toThrow("the VM is not awake");
    await vm[Symbol.asyncDispose]();
    expect(() => vm.putFile("/f", new Uint8Array(0), NEVER)).toThrow("the VM was ended");
  });

  test("stores files", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    await vm.putFile("/f", new Uint8Array(3_000_000), NEVER);
    const refused = await rejection<AgentError>(vm.putFile("/f/", new Uint8Array(1), NEVER));
    expect(refused.refusal).toBe("is_directory");
  });

  test("has tunnels both ways, which end with it", async () => {
    using machine = new FakeMachine();
    const vm = await awake(machine);
    await vm.serveProxy(() => undefined, NEVER);
    const tunnel = await vm.connectGuest(80, NEVER);
    const reading = rejection<AgentError>(tunnel.readable.getReader().read());
    await vm[Symbol.asyncDispose]();
    expect((await reading).code).toBe("agent_lost");
    expect(() => vm.connectGuest(80, NEVER)).toThrow("the VM was ended");
    expect(() => vm.serveProxy(() => undefined, NEVER)).toThrow("the VM was ended");
  });

  test("that is disposed of leaves no process and no directory, ends its runs, and did not die", async () => {
    using machine = new FakeMachine();
    const vm = await awake(machine);
    const { vmmPid } = vm;
    let hasDied = false;
    void vm.died.then(() => {
      hasDied = true;
    });
    const running = rejection<AgentError>(vm.startRun(command("hang"), NEVER).ended);
    await Promise.all([vm[Symbol.asyncDispose](), vm[Symbol.asyncDispose]()]);
    expect((await running).code).toBe("agent_lost");
    expect(readProcess(vmmPid)).toBeNull();
    expect(existsSync(machine.vmDir)).toBe(false);
    await Bun.sleep(5);
    expect(hasDied).toBe(false);
  });
});

describe("checkpoints of a VM", () => {
  const taken = { checkpointId: "chk_a", bytesWritten: 1, pageBytes: 1, pausedMs: 1 };

  test("are made one after another, also after one that failed", async () => {
    using machine = new FakeMachine();
    const steps: string[] = [];
    await using vm = await machine.startVm({}, async () => {
      steps.push("begins");
      await Bun.sleep(5);
      steps.push("ends");
      if (steps.length === 2) throw new Error("the first fails");
      return taken;
    });
    await vm.awaken(NEVER);
    const all = await Promise.allSettled([1, 2, 3].map(() => vm.checkpoint(NEVER)));
    expect(all.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(steps).toEqual(["begins", "ends", "begins", "ends", "begins", "ends"]);
  });

  test("end with it, and it waits for what they clear away", async () => {
    using machine = new FakeMachine();
    let isCleared = false;
    const vm = await machine.startVm({}, async (_, signal) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      return await promise.finally(async () => {
        await Bun.sleep(5);
        isCleared = true;
      });
    });
    await vm.awaken(NEVER);
    const taking = rejection<VmError>(vm.checkpoint(NEVER));
    await Bun.sleep(1);
    await vm[Symbol.asyncDispose]();
    expect(isCleared).toBe(true);
    expect((await taking).code).toBe("closed");
  });
});

describe("death", () => {
  const deaths: [string, VmDeath][] = [
    ["vmm-exit 3", { kind: "vmm_exited", end: { exitCode: 3, signal: null } }],
    ["panic", { kind: "guest_panic" }],
    ["poweroff", { kind: "guest_stopped" }],
    ["drop", { kind: "agent_lost" }],
    ["garbage", { kind: "agent_invalid" }],
  ];
  test.each(deaths)("by %s is told with its cause", async (text, death) => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    const running = rejection(vm.startRun(command(text), NEVER).ended);
    expect(await vm.died).toEqual(death);
    await running;
  });

  const KILLED: VmDeath = { kind: "vmm_exited", end: { exitCode: null, signal: "SIGKILL" } };

  test("of the VMM by a signal names the signal", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    process.kill(vm.vmmPid, "SIGKILL");
    expect(await vm.died).toEqual(KILLED);
  });

  test("of a VMM that is known long after its connections have ended is told with its cause", async () => {
    using machine = new FakeMachine();
    const vmm = await machine.startVmm();
    const { qmp, console, stderr, pid } = vmm;
    const late = {
      ...{ qmp, console, stderr, pid },
      ended: vmm.ended.then((end) => Bun.sleep(1500).then(() => end)),
      [Symbol.asyncDispose]: () => vmm[Symbol.asyncDispose](),
    };
    await using vm = machine.vmOf(late);
    await vm.awaken(NEVER);
    const running = rejection(vm.startRun(command("hang"), NEVER).ended);
    process.kill(pid, "SIGKILL");
    await running;
    expect(await vm.died).toEqual(KILLED);
  });

  test.each([
    ["kill", KILLED],
    ["poweroff", { kind: "guest_stopped" }],
  ] as [string, VmDeath][])("by %s is no panic though the guest has written of one", async (text, death) => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    await vm.startRun(command("write-panic"), NEVER).ended;
    await eventually("the line is there", () => vm.traces().console.includes("Kernel panic"));
    const running = rejection(vm.startRun(command(text === "kill" ? "hang" : text), NEVER).ended);
    if (text === "kill") process.kill(vm.vmmPid, "SIGKILL");
    expect(await vm.died).toEqual(death);
    await running;
  });

  test("leaves what QEMU and the guest said last", async () => {
    using machine = new FakeMachine();
    await using vm = await awake(machine);
    const pid = vm.vmmPid;
    const running = rejection(vm.startRun(command("complain"), NEVER).ended);
    await vm.died;
    expect(vm.traces()).toEqual({
      vmm_pid: pid,
      vmm_stderr: `${"x".repeat(4083)}\nfatal: \\x1b[`,
      console: "[    1.0] Kernel panic - not syncing: Attempted to kill init!",
    });
    await running;
  });
});
