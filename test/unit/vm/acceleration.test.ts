import { expect, test } from "bun:test";
import { accessSync, constants } from "node:fs";
import { accelerationCandidates, bootDeadlines } from "../../../src/vm/acceleration.ts";

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
