import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { describeWithVms } from "../support/real-vm.ts";

const DRIVER_PATH = join(resolve(import.meta.dir, "../.."), "scripts/anvil-e2e.ts");

describeWithVms("the compiled adapter in front of the compiled engine", () => {
  test.each(["lifecycle", "semantic", "flock"])("passes %s", async (mode) => {
    const child = Bun.spawn([process.execPath, DRIVER_PATH, mode], {
      env: { ...process.env, ANVIL_DAEMON_URL: "" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 110_000,
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`it ended with ${code}: ${err}\n${out}`);
    expect(out).toEndWith(`anvil-e2e: ${mode} passed\n`);
  });
});
