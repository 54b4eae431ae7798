import { rm } from "node:fs/promises";
import { join } from "node:path";
import { sleep, within } from "../base/wait.ts";
import { type BootDeadlines, bootDeadlines } from "./acceleration.ts";
import { type BootSource, type MachineSpec, STATE_FILE } from "./machine-spec.ts";
import type { Ground } from "./open-base.ts";
import { bootArgv } from "./qemu/argv.ts";
import { saveState } from "./qemu/migration.ts";
import type { RuntimeDirectory } from "./runtime-directory.ts";
import { hostTscKhz } from "./tsc-rate.ts";
import { VmError } from "./vm-error.ts";
import { describeEnd, Vmm } from "./vmm.ts";

const SAVE_DEADLINE_MS = 60_000;
const FIRST_LINE = "ignition-agent: up";
/** By then the guest's kernel is done with what booting left to do later, which else each clone would do first */
const SETTLE_MS = 300;
const READY_MARKER = "TOOLS_READY";

export interface WarmGuestRequest extends Ground {
  spec: MachineSpec;
  /** Holds memory.bin and receives state.bin */
  buildDir: string;
  runtime: RuntimeDirectory;
  progress: (message: string) => void;
  signal: AbortSignal;
}

/** Boots the image with memory.bin as its RAM, waits until its tools are warm, and saves its device state. */
export async function snapshotWarmGuest(request: WarmGuestRequest): Promise<void> {
  const { spec, buildDir, runtime, progress, signal } = request;
  const vmDir = runtime.createVmDirectory();
  try {
    progress(`booting under ${spec.acceleration}`);
    await using vmm = await Vmm.start(bootCommand(request, vmDir), vmDir, signal);
    await reachReady(vmm, bootDeadlines(spec.acceleration), progress, signal);
    progress("saving the snapshot");
    await sleep(SETTLE_MS, signal);
    await vmm.qmp.execute("stop");
    await saveState(vmm.qmp, join(buildDir, STATE_FILE), SAVE_DEADLINE_MS, signal);
  } finally {
    await rm(vmDir, { recursive: true, force: true });
  }
}

async function reachReady(
  vmm: Vmm,
  deadlines: BootDeadlines,
  progress: (message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const watching = new AbortController();
  const ended = vmm.ended.then((end) => {
    // The guest's RAM is a sparse file; a page that the disk has no room for is a bus error.
    const why = end.signal === "SIGBUS" ? ", since the disk of the store is full" : "";
    const seen = new Error(`QEMU ${describeEnd(end)} while the guest booted${why}`);
    throw new VmError("base_build_failed", vmm.complaint(seen));
  });
  ended.catch(() => undefined);
  const seen = (text: string, deadlineMs: number) =>
    within(
      Promise.race([vmm.console.seen(text, watching.signal), ended]),
      deadlineMs,
      `"${text}" on the guest's console`,
      signal,
    );
  try {
    await seen(FIRST_LINE, deadlines.firstSignMs);
    progress("warming the tools");
    await seen(READY_MARKER, deadlines.readyMs);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof VmError) throw error;
    throw new VmError("base_build_failed", `the guest did not boot: ${(error as Error).message}`, error);
  } finally {
    watching.abort();
  }
}

function bootCommand({ qemu, jail, image, spec, buildDir }: WarmGuestRequest, vmDir: string): string[] {
  const jailed = jail.argv({
    readOnlyPaths: [image.kernelPath, image.initramfsPath, image.rootfsPath],
    writablePaths: [vmDir, buildDir],
    devicePaths: spec.acceleration === "kvm" ? ["/dev/kvm"] : [],
    net: spec.net,
    memoryBytes: spec.memoryBytes,
  });
  const source: BootSource = { ...image, tscKhz: spec.acceleration === "tcg" ? hostTscKhz() : 0 };
  return [...jailed, qemu.path, ...bootArgv(spec, source, vmDir, buildDir)];
}
