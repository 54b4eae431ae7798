import { afterEach, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectNoLeftovers, expectNoVms, remainingVms, vmsOf } from "../support/leftovers.ts";
import { openDescriptors, readProcess } from "../support/processes.ts";
import { TestHome } from "../support/real-vm.ts";

const children: Bun.Subprocess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
});

/** A process that looks like a VMM of the test: named like QEMU, with the test's directory in its arguments. */
function fakeVmm(home: TestHome): Bun.Subprocess {
  const path = join(home.path, "qemu-system-fake");
  copyFileSync(Bun.which("sleep")!, path);
  const child = Bun.spawn([path, "600"]);
  children.push(child);
  return child;
}

test("a VMM that outlives its server is found, by descent and by its directory", async () => {
  using home = new TestHome();
  const child = fakeVmm(home);
  while (readProcess(child.pid)?.name !== "qemu-system-fak") await Bun.sleep(5);
  expect(vmsOf(process.pid).map((info) => info.pid)).toContain(child.pid);
  expect(remainingVms(home).map((info) => info.pid)).toEqual([child.pid]);
  await expect(expectNoVms(home, [], 100)).rejects.toThrow(`(pid ${child.pid})`);
  child.kill("SIGKILL");
  await child.exited;
  await expectNoVms(home);
});

test("files in the runtime directory are leftovers, an empty one is not", async () => {
  using home = new TestHome();
  mkdirSync(join(home.runtimePath, "1-2"), { recursive: true });
  writeFileSync(join(home.runtimePath, "1-2", "vsock.sock"), "");
  await expect(expectNoLeftovers(home, [], 100)).rejects.toThrow("1-2/vsock.sock");
  using untouched = new TestHome();
  await expectNoLeftovers(untouched, [], 100);
});

test("a process that runs has a start time and open descriptors", () => {
  expect(readProcess(process.pid)).toMatchObject({ pid: process.pid, parentPid: process.ppid });
  expect(readProcess(process.pid)!.startTicks).toBeGreaterThan(0);
  expect(openDescriptors(process.pid)).toBeGreaterThan(2);
});
