import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { OpenBase } from "./open-base.ts";
import { cloneArgv } from "./qemu/argv.ts";
import { loadState } from "./qemu/migration.ts";
import type { RefillHold } from "./refill-hold.ts";
import type { RuntimeDirectory } from "./runtime-directory.ts";
import { takeCheckpoint } from "./take-checkpoint.ts";
import { Vm, type VmOrigin } from "./vm.ts";
import type { VmCgroups } from "./vm-cgroups.ts";
import { VM_DEADLINES } from "./vm-deadlines.ts";
import { VmError } from "./vm-error.ts";
import { Vmm } from "./vmm.ts";

/** Restores one clone, paused; under `hold` it gives way to calls. Nothing is left when it rejects. */
export async function cloneBase(
  base: OpenBase,
  runtime: RuntimeDirectory,
  signal: AbortSignal,
  deadlines = VM_DEADLINES,
  cgroups: VmCgroups | null = null,
  hold: RefillHold | null = null,
): Promise<Vm> {
  signal.throwIfAborted();
  const dir = runtime.createVmDirectory();
  try {
    const cgroup = cgroups?.create(base.spec) ?? null;
    const vmm = await Vmm.start(cloneCommand(base, dir), dir, signal, deadlines, cgroup);
    try {
      hold?.over(vmm);
      await loadState(vmm.qmp, base.paths.statePath, deadlines.restoreMs, signal);
      const origin: VmOrigin = {
        agentBuild: base.manifest.agentBuild,
        takeCheckpoint: (machine, ending) => takeCheckpoint(base, machine, ending),
      };
      return new Vm(vmm, dir, origin, deadlines);
    } catch (error) {
      await vmm[Symbol.asyncDispose]();
      signal.throwIfAborted();
      throw new VmError(
        "clone_failed",
        `base '${base.name}' could not be restored: ${vmm.complaint(error as Error)}`,
        error,
      );
    }
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

function cloneCommand({ qemu, jail, spec, paths, image, manifest }: OpenBase, vmDir: string): string[] {
  const jailed = jail.argv({
    readOnlyPaths: [paths.dir, image.rootfsPath],
    writablePaths: [vmDir],
    devicePaths: spec.acceleration === "kvm" ? ["/dev/kvm"] : [],
    net: spec.net,
    memoryBytes: spec.memoryBytes,
  });
  return [...jailed, qemu.path, ...cloneArgv(spec, vmDir, dirname(paths.memoryPath), manifest.kind)];
}
