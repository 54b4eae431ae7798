import { expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { loadConfig } from "../../src/config/load-config.ts";
import { AgentClient } from "../../src/guest/agent-client.ts";
import { newCloneIdentity, tellCloned } from "../../src/guest/clone-identity.ts";
import { runCommand } from "../../src/guest/run-command.ts";
import { findGround, type OpenBase, openBase } from "../../src/vm/open-base.ts";
import { cloneArgv } from "../../src/vm/qemu/argv.ts";
import { loadState } from "../../src/vm/qemu/migration.ts";
import { RuntimeDirectory } from "../../src/vm/runtime-directory.ts";
import { Vmm } from "../../src/vm/vmm.ts";
import { describeWithVms, TestHome } from "../support/real-vm.ts";

const DEADLINE_MS = 60_000;
/** Under emulation most untold clones do the same; some are disturbed by the machine's load. */
const MOST_UNTOLD = 24;
const TOLD = 8;
const LIMIT_MS = 600_000;
const NEVER = new AbortController().signal;

/** The first 32 bytes of randomness in a clone that is told what it is, or not. */
async function firstRandomness(base: OpenBase, runtime: RuntimeDirectory, isTold: boolean): Promise<string> {
  const vmDir = runtime.createVmDirectory();
  const argv = [base.qemu.path, ...cloneArgv(base.spec, vmDir, dirname(base.paths.memoryPath))];
  await using vmm = await Vmm.start(argv, vmDir, NEVER);
  await loadState(vmm.qmp, base.paths.statePath, DEADLINE_MS, NEVER);
  await vmm.qmp.execute("cont");
  using agent = await AgentClient.connect({ path: join(vmDir, "vsock.sock"), deadlineMs: DEADLINE_MS });
  if (isTold) await tellCloned(agent, newCloneIdentity());
  const command = new TextEncoder().encode("od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n'");
  const run = { command, stdin: null, cwd: null, timeoutMs: DEADLINE_MS, maxOutputBytes: 4096 };
  const { stdout } = await runCommand(agent, run, NEVER);
  return new TextDecoder().decode(stdout.head);
}

/** Until one repeats an earlier one, or there are enough. */
async function clonesUntilRepeat(
  isTold: boolean,
  most: number,
): Promise<{ clones: number; different: number }> {
  using home = new TestHome();
  const config = loadConfig(home.env());
  const base = await openBase(config, await findGround(config), config.baseName);
  if (base === null) throw new Error("the shared base is not there");
  using runtime = RuntimeDirectory.open([home.runtimePath]);
  const seen = new Set<string>();
  let clones = 0;
  while (clones < most && seen.size === clones) {
    seen.add(await firstRandomness(base, runtime, isTold));
    clones += 1;
  }
  return { clones, different: seen.size };
}

describeWithVms("clones that are told nothing", () => {
  test(
    "repeat each other's randomness, which is why each is told before its first run",
    async () => {
      const { clones, different } = await clonesUntilRepeat(false, MOST_UNTOLD);
      expect(different).toBeLessThan(clones);
    },
    LIMIT_MS,
  );

  test(
    "and those that are told do not",
    async () => {
      expect(await clonesUntilRepeat(true, TOLD)).toEqual({ clones: TOLD, different: TOLD });
    },
    LIMIT_MS,
  );
});
