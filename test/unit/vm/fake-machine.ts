import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { Vm, type VmOrigin } from "../../../src/vm/vm.ts";
import type { VmDeadlines } from "../../../src/vm/vm-deadlines.ts";
import { Vmm, type VmmHandle } from "../../../src/vm/vmm.ts";
import type { FakeQemuOptions } from "../../fake-vmm/fake-qemu.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const PROGRAM_PATH = resolve(import.meta.dir, "../../fake-vmm/fake-qemu.ts");

const NO_CHECKPOINT: VmOrigin["takeCheckpoint"] = () => Promise.reject(new Error("this machine is a fake"));

/** A VM directory and the program that plays QEMU in it. */
export class FakeMachine extends TemporaryDirectory {
  readonly vmDir = this.join("1");

  constructor() {
    super();
    mkdirSync(this.vmDir);
  }

  startVmm(options: FakeQemuOptions = {}, signal?: AbortSignal): Promise<Vmm> {
    const argv = [process.execPath, PROGRAM_PATH, this.vmDir, JSON.stringify(options)];
    return Vmm.start(argv, this.vmDir, signal);
  }

  /** A VM over it, not awake yet. */
  async startVm(
    options: FakeQemuOptions = {},
    takeCheckpoint = NO_CHECKPOINT,
    deadlines?: VmDeadlines,
  ): Promise<Vm> {
    return this.vmOf(await this.startVmm(options), takeCheckpoint, deadlines);
  }

  vmOf(vmm: VmmHandle, takeCheckpoint = NO_CHECKPOINT, deadlines?: VmDeadlines): Vm {
    return new Vm(vmm, this.vmDir, { agentBuild: "b0", takeCheckpoint }, deadlines);
  }
}
