import { describe, expect, test } from "bun:test";
import { Activity } from "../../../src/vm/activity.ts";
import { type Holdable, LONGEST_HOLD_MS, RefillHold } from "../../../src/vm/refill-hold.ts";
import type { Vm } from "../../../src/vm/vm.ts";
import { VM_DEADLINES } from "../../../src/vm/vm-deadlines.ts";
import type { Vmm } from "../../../src/vm/vmm.ts";
import { eventually } from "../../support/eventually.ts";
import { readProcess } from "../../support/processes.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeMachine } from "./fake-machine.ts";

const NEVER = new AbortController().signal;
const LONG_MS = 60_000;

class HeldVmm implements Holdable {
  isHeld = false;
  holds = 0;

  hold(): void {
    this.isHeld = true;
    this.holds++;
  }

  release(): void {
    this.isHeld = false;
  }
}

describe("a hold", () => {
  test("begins with a call, also with one from before, and ends a moment after the last", async () => {
    const [activity, vmm] = [new Activity(), new HeldVmm()];
    using hold = new RefillHold(activity, LONG_MS, 1);
    const first = activity.begin();
    hold.over(vmm);
    expect(vmm.isHeld).toBe(true);
    const second = activity.begin();
    first[Symbol.dispose]();
    await Bun.sleep(5);
    expect(vmm.isHeld).toBe(true);
    second[Symbol.dispose]();
    await eventually("a release", () => !vmm.isHeld);
    activity.begin()[Symbol.dispose]();
    expect(vmm).toMatchObject({ isHeld: true, holds: 2 });
  });

  test("lasts from a call to one that follows at once", async () => {
    const [activity, vmm] = [new Activity(), new HeldVmm()];
    using hold = new RefillHold(activity, LONG_MS, 1);
    hold.over(vmm);
    activity.begin()[Symbol.dispose]();
    using _next = activity.begin();
    await Bun.sleep(5);
    expect(vmm).toMatchObject({ isHeld: true, holds: 1 });
  });

  test("ends at its limit though calls are in flight, and there is no other", async () => {
    const [activity, vmm] = [new Activity(), new HeldVmm()];
    using hold = new RefillHold(activity, 1, 1);
    const call = activity.begin();
    hold.over(vmm);
    await eventually("a release", () => !vmm.isHeld);
    call[Symbol.dispose]();
    using _next = activity.begin();
    expect(vmm).toMatchObject({ isHeld: false, holds: 1 });
  });

  test("shares its limit with those before it", async () => {
    const calls = 100;
    const [activity, vmm] = [new Activity(), new HeldVmm()];
    using hold = new RefillHold(activity, 20, 0);
    hold.over(vmm);
    for (let i = 0; i < calls; i++) {
      activity.begin()[Symbol.dispose]();
      await eventually("a release", () => !vmm.isHeld);
    }
    expect(vmm.holds).toBeLessThan(calls);
  });

  test("ends with its disposal, and there is no other", () => {
    const [activity, vmm] = [new Activity(), new HeldVmm()];
    using _call = activity.begin();
    const hold = new RefillHold(activity, LONG_MS, 1);
    hold.over(vmm);
    hold[Symbol.dispose]();
    using _next = activity.begin();
    expect(vmm).toMatchObject({ isHeld: false, holds: 1 });
  });

  test("leaves a clone at least half of each deadline it has until it is ready", () => {
    const { greetingMs, commandMs, restoreMs, connectMs, clonedMs, probeMs } = VM_DEADLINES;
    for (const deadlineMs of [greetingMs, commandMs, restoreMs, connectMs, clonedMs, probeMs])
      expect(LONGEST_HOLD_MS).toBeLessThanOrEqual(deadlineMs / 2);
  });
});

describe("a clone whose exercise is held", () => {
  /** With a call in flight, so that it stands still. */
  async function heldExercise(machine: FakeMachine, longestMs = LONG_MS) {
    const activity = new Activity();
    const call = activity.begin();
    const vmm: Vmm = await machine.startVmm();
    const vm: Vm = machine.vmOf(vmm);
    const hold = new RefillHold(activity, longestMs, 1);
    hold.over(vmm);
    const stopping = new AbortController();
    return { call, vm, hold, stopping, exercise: vm.exerciseAndPause(stopping.signal) };
  }

  const standsStill = (vm: Vm) => eventually("it stands still", () => readProcess(vm.vmmPid)?.state === "T");

  test("is ready when the call has ended", async () => {
    using machine = new FakeMachine();
    const { call, vm, hold, exercise } = await heldExercise(machine);
    await using _vm = vm;
    using _hold = hold;
    await standsStill(vm);
    call[Symbol.dispose]();
    await exercise;
    await vm.awaken(NEVER);
  });

  test("is ready though the call goes on, once the limit is reached", async () => {
    using machine = new FakeMachine();
    const { vm, hold, exercise } = await heldExercise(machine, 5);
    await using _vm = vm;
    using _hold = hold;
    await exercise;
  });

  test("tells that its VMM died, at once", async () => {
    using machine = new FakeMachine();
    const { vm, hold, exercise } = await heldExercise(machine);
    await using _vm = vm;
    using _hold = hold;
    await standsStill(vm);
    const failure = rejection(exercise);
    process.kill(vm.vmmPid, "SIGKILL");
    expect(await vm.died).toMatchObject({ kind: "vmm_exited" });
    await failure;
  });

  test("ends when the pool closes, and leaves nothing", async () => {
    using machine = new FakeMachine();
    const { vm, hold, stopping, exercise } = await heldExercise(machine);
    using _hold = hold;
    const { vmmPid } = vm;
    await standsStill(vm);
    const failure = rejection(exercise);
    stopping.abort(new Error("the pool is closing"));
    await failure;
    await vm[Symbol.asyncDispose]();
    expect(readProcess(vmmPid)).toBeNull();
  });
});
