import { expect, test } from "bun:test";
import { accessSync, constants } from "node:fs";
import { accelerationCandidates, bootDeadlines, firstThatWorks } from "../../../src/vm/acceleration.ts";

test("a forced acceleration is the only one tried", () => {
  for (const forced of ["kvm", "hvf", "tcg"] as const)
    expect(accelerationCandidates(forced)).toEqual([forced]);
});

test.skipIf(process.platform !== "linux")(
  "emulation is always tried, and last; KVM only when it opens",
  () => {
    let opens = true;
    try {
      accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
    } catch {
      opens = false;
    }
    expect(accelerationCandidates(null)).toEqual(opens ? ["kvm", "tcg"] : ["tcg"]);
  },
);

test("an emulated guest has longer to boot, so that a hanging accelerated one is given up first", () => {
  const [kvm, tcg] = [bootDeadlines("kvm"), bootDeadlines("tcg")];
  expect(kvm.firstSignMs).toBeLessThan(tcg.firstSignMs);
  expect(kvm.readyMs).toBeLessThan(tcg.readyMs);
});

test("an acceleration that does not boot a base is told and given up for the next", async () => {
  const told: unknown[] = [];
  const attempt = async (candidate: string) => {
    if (candidate === "kvm") throw new Error("no sign of life");
    return `booted under ${candidate}`;
  };
  const note = (candidate: string, error: unknown) => told.push([candidate, (error as Error).message]);
  expect(await firstThatWorks(["kvm", "tcg"], attempt, note)).toBe("booted under tcg");
  expect(told).toEqual([["kvm", "no sign of life"]]);
  expect(await firstThatWorks(["kvm"], attempt, note)).toBeNull();
});

test("nothing further is tried when a failure ends it all", async () => {
  const tried: string[] = [];
  const attempt = async (candidate: string) => {
    tried.push(candidate);
    throw new Error(candidate);
  };
  const abort = (_: string, error: unknown) => {
    throw error;
  };
  await expect(firstThatWorks(["kvm", "tcg"], attempt, abort)).rejects.toThrow("kvm");
  expect(tried).toEqual(["kvm"]);
});
