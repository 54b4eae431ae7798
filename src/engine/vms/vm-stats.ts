import { z } from "@hono/zod-openapi";
import type { EngineVm } from "./engine-vm.ts";

const MIB = 1_048_576;

export const vmStats = z
  .object({
    vm_id: z.string(),
    /** Of one processor, since the last time anybody asked */
    cpu_percent: z.number(),
    mem_used_mib: z.number(),
    mem_total_mib: z.number(),
    uptime_seconds: z.number(),
    network_rx_bytes: z.int(),
    network_tx_bytes: z.int(),
    agent_busy: z.boolean(),
  })
  .openapi("VmStats");
export type VmStats = z.infer<typeof vmStats>;

/** Bytes to and from the guest through the egress proxy. */
export interface NetworkUse {
  rxBytes: number;
  txBytes: number;
}

/** Measures VMs from outside; nothing is asked of the guest. */
export class VmMeter {
  readonly #isBusy: (vmId: string) => boolean;
  readonly #networkOf: (vmId: string) => NetworkUse;
  readonly #seen = new WeakMap<EngineVm, { cpuMs: number; at: number }>();

  constructor(isBusy: (vmId: string) => boolean, networkOf: (vmId: string) => NetworkUse) {
    this.#isBusy = isBusy;
    this.#networkOf = networkOf;
  }

  /** Throws 502 for a VM that does not run. */
  measure(vm: EngineVm, now = Date.now()): VmStats {
    const { cpuMs, memoryBytes } = vm.machine.usage();
    const createdAt = Date.parse(vm.record.created_at);
    const before = this.#seen.get(vm) ?? { cpuMs: 0, at: createdAt };
    this.#seen.set(vm, { cpuMs, at: now });
    // None when the clock was set back.
    const elapsedMs = Math.max(0, now - before.at);
    const { rxBytes, txBytes } = this.#networkOf(vm.id);
    return {
      vm_id: vm.id,
      cpu_percent: elapsedMs === 0 ? 0 : rounded((Math.max(0, cpuMs - before.cpuMs) / elapsedMs) * 100),
      mem_used_mib: rounded(Math.min(memoryBytes, vm.record.memory_bytes) / MIB),
      mem_total_mib: vm.record.memory_bytes / MIB,
      uptime_seconds: rounded(Math.max(0, now - createdAt) / 1000),
      network_rx_bytes: rxBytes,
      network_tx_bytes: txBytes,
      agent_busy: this.#isBusy(vm.id),
    };
  }
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
