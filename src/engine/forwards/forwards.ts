import type { Logger } from "../../base/logger.ts";
import { jsonError } from "../engine-error.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { ForwardListener } from "./forward-listener.ts";

/** Of one VM */
const MAX_FORWARDS = 64;

/** A port of this machine's loopback that leads to one of a guest's. */
export interface Forward {
  guest_port: number;
  host_port: number;
}

/** The forwarded ports of all VMs. They are in the VMs' records, and come back with them. */
export class Forwards implements Disposable {
  readonly #log: Logger;
  readonly #listeners = new Map<EngineVm, Map<number, ForwardListener>>();
  /** How many are being opened, so that many at once stay within the limit too */
  readonly #opening = new Map<EngineVm, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Host port 0 takes any that is free. Rejects with 409 for one that cannot be had, 502 for a VM that does not run. */
  async open(vm: EngineVm, guestPort: number, hostPort: number): Promise<Forward> {
    // Asked for its refusal only.
    void vm.machine;
    const opening = this.#opening.get(vm) ?? 0;
    if (this.#listenersOf(vm).size + opening >= MAX_FORWARDS)
      throw jsonError(409, "too_many_forwards", `a VM has at most ${MAX_FORWARDS} forwarded ports`);
    this.#opening.set(vm, opening + 1);
    try {
      const listener = await this.#listen(vm, guestPort, hostPort);
      return await this.#keep(vm, guestPort, listener);
    } finally {
      const left = this.#opening.get(vm)! - 1;
      if (left === 0) this.#opening.delete(vm);
      else this.#opening.set(vm, left);
    }
  }

  /** One that cannot be written down is closed again: it would be gone after a restart. */
  async #keep(vm: EngineVm, guestPort: number, listener: ForwardListener): Promise<Forward> {
    const forward = { guest_port: guestPort, host_port: listener.hostPort };
    try {
      await vm.save({ forwards: [...vm.record.forwards, forward] });
      return forward;
    } catch (error) {
      this.#listenersOf(vm).delete(listener.hostPort);
      listener[Symbol.dispose]();
      await this.#forget(vm, listener.hostPort);
      throw error;
    }
  }

  /** Rejects with 404 when the VM has no such host port. */
  async close(vm: EngineVm, hostPort: number): Promise<void> {
    const listeners = this.#listenersOf(vm);
    const listener = listeners.get(hostPort);
    if (!listener) throw jsonError(404, "forward_not_found", "forward not found");
    listeners.delete(hostPort);
    listener[Symbol.dispose]();
    await vm.save({ forwards: vm.record.forwards.filter((forward) => forward.host_port !== hostPort) });
  }

  /** Takes the ports of adopted VMs again; one that somebody else has by now is told and dropped. */
  async restore(vms: readonly EngineVm[]): Promise<void> {
    for (const vm of vms.filter(({ isRunning }) => isRunning)) {
      for (const { guest_port: guestPort, host_port: hostPort } of vm.record.forwards) {
        try {
          await this.#listen(vm, guestPort, hostPort);
        } catch (error) {
          this.#log.warn({ err: error, vm_id: vm.id }, "a forwarded port could not be had again");
          await this.#forget(vm, hostPort);
        }
      }
    }
  }

  [Symbol.dispose](): void {
    for (const listeners of this.#listeners.values())
      for (const listener of listeners.values()) listener[Symbol.dispose]();
  }

  /** The next engine tries again what stays on disk. */
  async #forget(vm: EngineVm, hostPort: number): Promise<void> {
    try {
      await vm.save({ forwards: vm.record.forwards.filter((known) => known.host_port !== hostPort) });
    } catch (error) {
      this.#log.error({ err: error, vm_id: vm.id }, "that a port is not forwarded could not be written");
    }
  }

  async #listen(vm: EngineVm, guestPort: number, hostPort: number): Promise<ForwardListener> {
    const connect = () => vm.awake.connectGuest(guestPort, NEVER);
    const listener = await ForwardListener.open(hostPort, connect, this.#log);
    if (!vm.isRunning) {
      listener[Symbol.dispose]();
      throw jsonError(502, "agent_unreachable", "agent unreachable: the VM ended meanwhile");
    }
    this.#listenersOf(vm).set(listener.hostPort, listener);
    return listener;
  }

  #listenersOf(vm: EngineVm): Map<number, ForwardListener> {
    const known = this.#listeners.get(vm);
    if (known) return known;
    const listeners = new Map<number, ForwardListener>();
    this.#listeners.set(vm, listeners);
    vm.onEnd(() => {
      for (const listener of listeners.values()) listener[Symbol.dispose]();
      this.#listeners.delete(vm);
    });
    return listeners;
  }
}

/** A connection in the guest has a deadline of its own. */
const NEVER = new AbortController().signal;
