import { existsSync, readdirSync } from "node:fs";
import { descendantsOf, listProcesses, mentionsPath, type ProcessInfo, readProcess } from "./processes.ts";
import type { TestHome } from "./real-vm.ts";

const VM_NAMES = /^(qemu-system|bwrap)/;

/** The VM processes a server has now: every QEMU and bubblewrap process below it. */
export function vmsOf(serverPid: number): ProcessInfo[] {
  return descendantsOf(serverPid).filter((info) => VM_NAMES.test(info.name));
}

/** Those of the processes that have not ended; a pid that was given out again does not count. */
export function stillAlive(seen: ProcessInfo[]): ProcessInfo[] {
  return seen.filter((info) => {
    const now = readProcess(info.pid);
    return now !== null && now.startTicks === info.startTicks && now.state !== "Z";
  });
}

/** VM processes that belong to a test: those seen earlier that still live, and any that name its directory. */
export function remainingVms(home: TestHome, seen: ProcessInfo[] = []): ProcessInfo[] {
  const tagged = listProcesses().filter(
    (info) => VM_NAMES.test(info.name) && info.state !== "Z" && mentionsPath(info.pid, home.path),
  );
  return [...new Map([...stillAlive(seen), ...tagged].map((info) => [info.pid, info])).values()];
}

/** Sockets and directories servers left in the test's runtime directory, relative to it. */
export function remainingPaths(home: TestHome): string[] {
  if (!existsSync(home.runtimePath)) return [];
  return readdirSync(home.runtimePath, { recursive: true, encoding: "utf8" }).sort();
}

/** A kernel with little memory left may take seconds to tear a QEMU down. That it takes 2 s at most has a test of its own. */
const GONE_MS = 30_000;

/** Waits until no VM of the test is left; throws naming those that are when `withinMs` is over. */
export async function expectNoVms(
  home: TestHome,
  seen: ProcessInfo[] = [],
  withinMs = GONE_MS,
): Promise<void> {
  await expectNothing(
    () => remainingVms(home, seen).map((info) => `${info.name} (pid ${info.pid})`),
    withinMs,
  );
}

/** Waits until nothing of the test's servers is left, neither a VM nor a file. */
export async function expectNoLeftovers(
  home: TestHome,
  seen: ProcessInfo[] = [],
  withinMs = GONE_MS,
): Promise<void> {
  await expectNoVms(home, seen, withinMs);
  await expectNothing(() => remainingPaths(home), withinMs);
}

async function expectNothing(list: () => string[], withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  let left = list();
  while (left.length > 0 && performance.now() < deadline) {
    await Bun.sleep(50);
    left = list();
  }
  if (left.length > 0) throw new Error(`left behind after ${withinMs} ms: ${left.join(", ")}`);
}
