import { rm } from "node:fs/promises";
import { join } from "node:path";
import { AgentClient } from "../src/guest/agent-client.ts";
import { probeGuest } from "../src/guest/probe-guest.ts";
import { AGENT_SOCKET } from "../src/vm/machine-spec.ts";
import type { OpenBase } from "../src/vm/open-base.ts";
import { cloneArgv } from "../src/vm/qemu/argv.ts";
import { loadState } from "../src/vm/qemu/migration.ts";
import type { RuntimeDirectory } from "../src/vm/runtime-directory.ts";
import { Vmm } from "../src/vm/vmm.ts";

/** The least a clone can cost: QEMU without jail, identity or session, restored, and one program in it. Times in `ms`. */
export async function bareRestore(
  base: OpenBase,
  runtime: RuntimeDirectory,
): Promise<{ restoreMs: number; roundTripMs: number }> {
  const signal = AbortSignal.timeout(60_000);
  const dir = runtime.createVmDirectory();
  try {
    const startedAt = performance.now();
    await using vmm = await Vmm.start(
      [base.qemu.path, ...cloneArgv(base.spec, dir, base.paths.dir)],
      dir,
      signal,
    );
    await loadState(vmm.qmp, base.paths.statePath, 20_000, signal);
    await vmm.qmp.execute("cont");
    const restoredAt = performance.now();
    using agent = await AgentClient.connect({ path: join(dir, AGENT_SOCKET), deadlineMs: 20_000, signal });
    await probeGuest(agent, 20_000, signal);
    return { restoreMs: restoredAt - startedAt, roundTripMs: performance.now() - restoredAt };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
