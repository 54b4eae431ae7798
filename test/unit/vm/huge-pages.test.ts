import { expect, test } from "bun:test";
import { refuseHugePages } from "../../../src/vm/huge-pages.ts";

test.skipIf(process.platform !== "linux")("what is started afterwards gets no huge pages", async () => {
  expect(refuseHugePages()).toBeTrue();
  const child = Bun.spawn(["cat", "/proc/self/status"], { stdin: "ignore", stdout: "pipe" });
  expect(await child.stdout.text()).toContain("\nTHP_enabled:\t0\n");
});
