import { DeadlineError, within } from "../base/wait.ts";
import type { VmDeath } from "./vm-death.ts";
import { type VmTraces, vmTraces } from "./vm-traces.ts";
import type { VmmEnd, VmmHandle } from "./vmm.ts";

/** A VMM may answer once more before a guest that just stopped takes it along. */
const STOP_GRACE_MS = 500;
/** How long one that neither answers nor ends is waited for */
const VMM_END_MS = 10_000;
const PANIC_LINE = "Kernel panic - not syncing";
/** What the kernel says when it is told to stop, and not when it panics */
const STOP_LINE = "] reboot: ";

/** Finds out how the end of a VM came about. */
export class VmAutopsy {
  readonly #vmm: VmmHandle;
  /** Afterwards nothing tells which process it was */
  readonly #vmmPid: number;
  #hasGuestStopped = false;

  constructor(vmm: VmmHandle) {
    this.#vmm = vmm;
    this.#vmmPid = vmm.pid;
    vmm.qmp.onEvent(({ event, data }) => {
      if (event === "SHUTDOWN" && data["guest"] === true) this.#hasGuestStopped = true;
    });
  }

  /** Settles when the VMM ends. */
  async death(): Promise<VmDeath> {
    return this.#causeOf(await this.#vmm.ended);
  }

  /**
   * Whether the VMM ends, for an agent whose connection has: a dying one closes that first, and on a busy machine its own
   * end is known much later. Null when it lives on, which it shows by an answer.
   */
  async deathOfSilenced(): Promise<VmDeath | null> {
    let waitMs = STOP_GRACE_MS;
    try {
      await this.#vmm.qmp.execute("query-status");
    } catch {
      // It ends, or hangs, and then nobody may wait for ever.
      waitMs = VMM_END_MS;
    }
    try {
      return await within(this.death(), waitMs, "QEMU's end");
    } catch (error) {
      if (error instanceof DeadlineError) return null;
      throw error;
    }
  }

  traces(): VmTraces {
    return vmTraces(this.#vmmPid, this.#vmm.stderr.text(), this.#vmm.console.text());
  }

  /** A panic counts only where the guest stopped the machine by it: anybody in it can write to its console. */
  #causeOf(end: VmmEnd): VmDeath {
    if (!this.#hasGuestStopped) return { kind: "vmm_exited", end };
    const console = this.#vmm.console.text();
    const panicAt = console.lastIndexOf(PANIC_LINE);
    const isPanic = panicAt >= 0 && !console.includes(STOP_LINE, panicAt);
    return { kind: isPanic ? "guest_panic" : "guest_stopped" };
  }
}
