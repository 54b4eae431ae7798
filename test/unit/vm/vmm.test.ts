import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { loadState } from "../../../src/vm/qemu/migration.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { Vmm } from "../../../src/vm/vmm.ts";
import { eventually } from "../../support/eventually.ts";
import { openDescriptors, readProcess } from "../../support/processes.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeMachine } from "./fake-machine.ts";

describe("starting", () => {
  test("waits until the program takes commands; disposing ends it", async () => {
    using machine = new FakeMachine();
    const vmm = await machine.startVmm();
    const { pid } = vmm;
    await vmm.qmp.execute("stop");
    expect(readProcess(pid)).not.toBeNull();
    await vmm[Symbol.asyncDispose]();
    expect(readProcess(pid)).toBeNull();
    expect(await vmm.ended).toEqual({ exitCode: null, signal: "SIGKILL" });
    await vmm[Symbol.asyncDispose]();
  });

  test("a program that ends at once is a failure with its own words", async () => {
    using machine = new FakeMachine();
    const error = await rejection<VmError>(machine.startVmm({ complaint: "qemu: no such machine" }));
    expect(error.code).toBe("vmm_failed");
    expect(error.message).toBe("QEMU did not start: QEMU exited (status 1); it said: qemu: no such machine");
  });

  test("a program that is not there is a failure", async () => {
    using machine = new FakeMachine();
    const error = await rejection<VmError>(Vmm.start(["/nowhere/qemu"], machine.vmDir));
    expect(error.code).toBe("vmm_failed");
    expect(error.message).toContain("/nowhere/qemu");
  });

  test("ends when the caller gives up on a program that says nothing", async () => {
    using machine = new FakeMachine();
    const starting = machine.startVmm({ greeting: "nothing" }, AbortSignal.timeout(100));
    expect((await rejection(starting)).name).toBe("TimeoutError");
  });

  test("in vain leaves no descriptor open", async () => {
    using machine = new FakeMachine();
    const attempts = [
      () => machine.startVmm({ complaint: "no" }),
      () => Vmm.start(["/nowhere/qemu"], machine.vmDir),
      () => machine.startVmm({}, AbortSignal.abort()),
    ];
    for (const attempt of attempts) await rejection(attempt());
    const before = openDescriptors(process.pid);
    for (const attempt of [...attempts, ...attempts]) await rejection(attempt());
    await eventually("no more are open than before", () => {
      Bun.gc(true);
      return openDescriptors(process.pid) <= before;
    });
    expect(readdirSync(machine.vmDir).filter((name) => name.endsWith(".lock"))).toEqual([]);
  });
});

describe("a program that ends by itself", () => {
  test("says with which status, and its commands fail", async () => {
    using machine = new FakeMachine();
    await using vmm = await machine.startVmm({ migration: "exits", unanswered: [] });
    const loading = rejection(loadState(vmm.qmp, "/s", 60_000));
    expect(await vmm.ended).toEqual({ exitCode: 1, signal: null });
    expect((await loading).message).toBe("QEMU exited (status 1)");
    expect((await rejection(vmm.qmp.execute("cont"))).message).toBe("QEMU exited (status 1)");
  });
});

describe("a program that is held", () => {
  async function held(machine: FakeMachine): Promise<Vmm> {
    const vmm = await machine.startVmm();
    vmm.hold();
    vmm.hold();
    await eventually("it stands still", () => readProcess(vmm.pid)?.state === "T");
    return vmm;
  }

  test("stands still, and answers when it is released", async () => {
    using machine = new FakeMachine();
    await using vmm = await held(machine);
    const answer = vmm.qmp.execute("stop");
    vmm.release();
    vmm.release();
    await answer;
    expect(readProcess(vmm.pid)?.state).not.toBe("T");
  });

  test("ends with its disposal, and is not held again meanwhile", async () => {
    using machine = new FakeMachine();
    const vmm = await held(machine);
    const { pid } = vmm;
    const disposal = vmm[Symbol.asyncDispose]();
    vmm.hold();
    await disposal;
    expect(readProcess(pid)).toBeNull();
    expect(await vmm.ended).toEqual({ exitCode: null, signal: "SIGKILL" });
  });

  test("and killed is seen to end; then it can be neither held nor released", async () => {
    using machine = new FakeMachine();
    await using vmm = await held(machine);
    process.kill(vmm.pid, "SIGKILL");
    expect(await vmm.ended).toEqual({ exitCode: null, signal: "SIGKILL" });
    vmm.release();
    vmm.hold();
  });
});
