import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { stillAlive } from "../support/leftovers.ts";
import { descendantsOf } from "../support/processes.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually } from "../support/test-server.ts";

const DRIVER_PATH = join(resolve(import.meta.dir, "../.."), "scripts/anvil-e2e.ts");
/** When it is asked to end, which leaves it time to end its engine with its VMs before the test is over */
const ASK_MS = 90_000;
const KILL_MS = 115_000;

/** The driver in a process group of its own, none of which outlives this. */
class Driver implements AsyncDisposable {
  readonly child;
  readonly #timers: Timer[];

  constructor(mode: string) {
    this.child = Bun.spawn([process.execPath, DRIVER_PATH, mode], {
      env: { ...process.env, ANVIL_DAEMON_URL: "" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#timers = [
      setTimeout(() => this.child.kill("SIGTERM"), ASK_MS),
      setTimeout(() => process.kill(-this.child.pid, "SIGKILL"), KILL_MS),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null) this.child.kill("SIGTERM");
    await this.child.exited;
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

describeWithVms("the compiled adapter in front of the compiled engine", () => {
  test.each(["lifecycle", "semantic", "flock"])("passes %s", async (mode) => {
    await using driver = new Driver(mode);
    const { stdout, stderr, exited } = driver.child;
    const [out, err, code] = await Promise.all([stdout.text(), stderr.text(), exited]);
    if (code !== 0) throw new Error(`it ended with ${code}: ${err}\n${out}`);
    expect(out).toEndWith(`anvil-e2e: ${mode} passed\n`);
  });

  test("the driver takes its engine and VMs with it when it is ended", async () => {
    await using driver = new Driver("semantic");
    const { child } = driver;
    let out = "";
    const stderr = child.stderr.text();
    const read = async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) out += text;
    };
    const printed = read();
    await eventually("the driver's task runs", 60_000, () => {
      if (child.exitCode !== null) throw new Error(`the driver ended: ${out}`);
      return out.includes("== A task that takes too long");
    });
    const below = descendantsOf(child.pid);
    const engine = below.find(({ pid }) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("daemon"));
    const [, workPath] = /IGN_ENGINE_DIR=([^\0]+)/.exec(
      readFileSync(`/proc/${engine!.pid}/environ`, "utf8"),
    )!;
    expect(below.some(({ name }) => name.startsWith("qemu"))).toBe(true);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(1);
    expect(await stderr).toContain("SIGTERM ended it");
    await printed;
    expect([stillAlive(below), existsSync(workPath!)]).toEqual([[], false]);
  });
});
