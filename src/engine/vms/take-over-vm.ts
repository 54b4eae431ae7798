import type { Logger } from "../../base/logger.ts";
import { isAlive } from "../../base/process-identity.ts";
import type { VmEgress } from "../egress/vm-egress.ts";
import { endInterruptedTask } from "../tasks/interrupted-task.ts";
import type { EngineVm } from "./engine-vm.ts";
import type { Machine, Machines } from "./machine.ts";
import type { MachineRecord } from "./vm-record.ts";

export interface TakeOverParts {
  machines: Machines;
  egress: VmEgress;
  log: Logger;
}

/**
 * The machine of a VM that an earlier engine left, as it was. Rejects, and leaves it unconnected, when it does not come
 * up: one that still runs gets a second chance, since on a machine that is busy with others it may just have been slow.
 */
export async function takeOverVm(
  vm: EngineVm,
  known: MachineRecord,
  parts: TakeOverParts,
  signal: AbortSignal,
): Promise<Machine> {
  try {
    return await tryOnce(vm, known, parts, signal);
  } catch (error) {
    if (!isAlive(known.vmm)) throw error;
    parts.log.warn({ err: error, vm_id: vm.id }, "a VM could not be adopted yet; it is tried again");
    return await tryOnce(vm, known, parts, signal);
  }
}

async function tryOnce(
  vm: EngineVm,
  known: MachineRecord,
  { machines, egress }: TakeOverParts,
  signal: AbortSignal,
): Promise<Machine> {
  const machine = await machines.adopt(known, vm.place, signal);
  try {
    await egress.serveAdopted(vm, machine);
    await endInterruptedTask(machine, vm.dir, signal);
    if (vm.record.paused) await machine.pause();
    return machine;
  } catch (error) {
    machine.detach();
    throw error;
  }
}
