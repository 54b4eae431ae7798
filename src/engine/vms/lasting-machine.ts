import { Message } from "../../guest/agent-protocol.ts";
import type { RunCommand, RunHandle } from "../../guest/run-handle.ts";
import type { TunnelHandler } from "../../guest/serve-tunnels.ts";
import type { FileContent, GetRange } from "../../guest/transfer-file.ts";
import type { Tunnel } from "../../guest/tunnel.ts";
import type { LastingVm } from "../../vm/lasting-vm.ts";
import type { OpenBase } from "../../vm/open-base.ts";
import type { VmDeath } from "../../vm/vm-death.ts";
import { vmmUsage } from "../../vm/vmm-usage.ts";
import type { Machine, MachineUsage } from "./machine.ts";
import { copierOf, type MachineCopier } from "./machine-copier.ts";
import type { MachineRecord } from "./vm-record.ts";

const PING_DEADLINE_MS = 5000;

/** A real one: the VM, its VMM, and what it is a clone of. */
export class LastingMachine implements Machine {
  readonly record: MachineRecord;
  readonly #lasting: LastingVm;
  readonly #base: OpenBase;

  readonly #onEnd: () => void;

  /** `onEnd` is called when it has been ended. */
  constructor(lasting: LastingVm, base: OpenBase, storePath: string, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#lasting = lasting;
    this.#base = base;
    const origin = { storePath, name: base.name, manifest: base.manifest };
    this.record = { vmm: lasting.vmm.identity, identity: lasting.vm.identity, origin };
  }

  get died(): Promise<VmDeath> {
    return this.#lasting.vm.died;
  }

  startRun(command: RunCommand, signal: AbortSignal): RunHandle {
    return this.#lasting.vm.startRun(command, signal);
  }

  putFile(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    return this.#lasting.vm.putFile(path, content, signal);
  }

  getFile(path: string, range: GetRange, signal: AbortSignal): Promise<FileContent> {
    return this.#lasting.vm.getFile(path, range, signal);
  }

  async ping(signal: AbortSignal): Promise<void> {
    await this.#lasting.vm.agent.request(Message.PING, {}, () => undefined, PING_DEADLINE_MS, signal);
  }

  serveProxy(handler: TunnelHandler, signal: AbortSignal): Promise<void> {
    return this.#lasting.vm.serveProxy(handler, signal);
  }

  connectGuest(port: number, signal: AbortSignal): Promise<Tunnel> {
    return this.#lasting.vm.connectGuest(port, signal);
  }

  pause(): Promise<void> {
    return this.#lasting.vm.pause();
  }

  resume(): Promise<void> {
    return this.#lasting.vm.resume();
  }

  copy<T>(
    work: (copier: MachineCopier, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    staysStill?: boolean,
  ): Promise<T> {
    return this.#lasting.vm.copy(
      (machine, untilEnd) => work(copierOf(machine, this.#base), untilEnd),
      signal,
      staysStill,
    );
  }

  usage(): MachineUsage {
    return vmmUsage(this.#lasting.vmm.pid);
  }

  detach(): void {
    this.#lasting.vm.letGo();
    this.#lasting.vmm.detach();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lasting.vm[Symbol.asyncDispose]();
    this.#onEnd();
  }
}
