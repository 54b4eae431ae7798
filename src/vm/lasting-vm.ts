import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { ProcessIdentity } from "../base/process-identity.ts";
import type { CloneIdentity } from "../guest/clone-identity.ts";
import { type LastingPlace, LastingVmm } from "./lasting-vmm.ts";
import type { OpenBase } from "./open-base.ts";
import { cloneArgv } from "./qemu/argv.ts";
import { loadState } from "./qemu/migration.ts";
import { takeCheckpoint } from "./take-checkpoint.ts";
import { Vm, type VmOrigin } from "./vm.ts";
import { VM_DEADLINES } from "./vm-deadlines.ts";
import { VmError } from "./vm-error.ts";

/** A VM that outlives this process, and its VMM. Disposal of the VM ends both and removes the sockets' directory. */
export interface LastingVm {
  vm: Vm;
  vmm: LastingVmm;
}

/** Restores one clone that outlives this process, and wakes it. Nothing but the log is left when it rejects. */
export async function cloneLasting(
  base: OpenBase,
  place: LastingPlace,
  signal: AbortSignal,
  deadlines = VM_DEADLINES,
): Promise<LastingVm> {
  signal.throwIfAborted();
  await mkdir(place.socketDir, { recursive: true, mode: 0o700 });
  let vmm: LastingVmm | null = null;
  let vm: Vm | null = null;
  try {
    vmm = await LastingVmm.start(lastingCommand(base, place.socketDir), place, signal, deadlines);
    await loadState(vmm.qmp, base.paths.statePath, deadlines.restoreMs, signal);
    vm = new Vm(vmm, place.socketDir, originOf(base), deadlines);
    await vm.awaken(signal);
    vm.exerciseSoon();
    return { vm, vmm };
  } catch (error) {
    await (vm ?? vmm)?.[Symbol.asyncDispose]();
    await rm(place.socketDir, { recursive: true, force: true });
    signal.throwIfAborted();
    const reason = (error as Error).message;
    throw new VmError("clone_failed", `'${base.name}' could not be restored: ${reason}`, error);
  }
}

/** Connects to a VM that an earlier process made, and lets it go on. It is left as it is when this rejects. */
export async function adoptLasting(
  base: OpenBase,
  known: { vmm: ProcessIdentity; place: LastingPlace; identity: CloneIdentity },
  signal: AbortSignal,
  deadlines = VM_DEADLINES,
): Promise<LastingVm> {
  const vmm = await LastingVmm.adopt(known.vmm, known.place, signal, deadlines);
  const vm = new Vm(vmm, known.place.socketDir, originOf(base), deadlines, known.identity);
  try {
    // It may stand still: the process that copied it died at that. Told once more who it is, it thaws what was held.
    await vm.awaken(signal);
    return { vm, vmm };
  } catch (error) {
    vm.letGo();
    vmm.detach();
    throw error;
  }
}

function originOf(base: OpenBase): VmOrigin {
  return {
    agentBuild: base.manifest.agentBuild,
    takeCheckpoint: (machine, ending) => takeCheckpoint(base, machine, ending),
  };
}

function lastingCommand({ qemu, jail, spec, paths, image, manifest }: OpenBase, socketDir: string): string[] {
  const jailed = jail.argv({
    readOnlyPaths: [paths.dir, image.rootfsPath],
    writablePaths: [socketDir],
    devicePaths: spec.acceleration === "kvm" ? ["/dev/kvm"] : [],
    net: spec.net,
    outlives: true,
    memoryBytes: spec.memoryBytes,
  });
  const argv = cloneArgv(spec, socketDir, dirname(paths.memoryPath), manifest.kind, "listens");
  return [...jailed, qemu.path, ...argv];
}
