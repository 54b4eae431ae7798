import { existsSync } from "node:fs";
import type { Logger } from "../../base/logger.ts";
import { EgressGate, type InternalDoor, type OnVerdict } from "../../egress/egress-gate.ts";
import { DENY_ALL, type EgressPolicy } from "../../egress/egress-policy.ts";
import { loadEgressPolicy } from "../../egress/egress-profile.ts";
import { serveProxyConnection } from "../../egress/serve-proxy-connection.ts";
import type { Profiles } from "../profiles/profiles.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import type { Machine } from "../vms/machine.ts";
import type { NetworkUse } from "../vms/vm-stats.ts";

/** What http://ignition.internal answers a VM; null for one that has no door. */
export type DoorOf = (vm: EngineVm) => InternalDoor | null;

/** The way out of each VM, by its policy. Rules are read anew for each VM, and again when it is adopted. */
export class VmEgress {
  readonly #profiles: Profiles;
  readonly #log: Logger;
  readonly #gates = new Map<string, EgressGate>();
  /** Set by the part that has something to say to guests */
  doorOf: DoorOf = () => null;
  /** Set by the part that counts */
  onVerdict: OnVerdict = () => undefined;

  constructor(profiles: Profiles, log: Logger) {
    this.#profiles = profiles;
    this.#log = log;
  }

  /** Opens the way out before anything runs in the VM. Rejects when its rules cannot be read: then it has none. */
  async serve(vm: EngineVm, machine: Machine): Promise<void> {
    await this.#open(vm, machine, await this.#policyOf(vm));
  }

  /** For one that ran under an earlier engine: when its rules cannot be read any more, all it has left is its door. */
  async serveAdopted(vm: EngineVm, machine: Machine): Promise<void> {
    let policy = DENY_ALL;
    try {
      policy = await this.#policyOf(vm);
    } catch (error) {
      this.#log.error({ err: error, vm_id: vm.id }, "an adopted VM has no way out");
    }
    await this.#open(vm, machine, policy);
  }

  async #open(vm: EngineVm, machine: Machine, policy: EgressPolicy): Promise<void> {
    const internal = this.doorOf(vm);
    // Without a door there is nothing to listen for.
    if (policy.kind === "deny_all" && internal === null) return;
    const gate = new EgressGate({
      policy,
      log: this.#log,
      logFields: { vm_id: vm.id },
      onVerdict: (verdict, reason) => this.onVerdict(verdict, reason),
      ...(internal && { internal }),
    });
    // Of an attempt to adopt it that failed.
    this.#end(vm.id);
    this.#gates.set(vm.id, gate);
    vm.onEnd(() => this.#end(vm.id));
    await machine.serveProxy((tunnel) => serveProxyConnection(tunnel, gate), gate.signal);
  }

  /** Of all VMs, now */
  get openConnections(): number {
    return this.#gates.values().reduce((sum, { counters }) => sum + counters.open, 0);
  }

  networkOf(vmId: string): NetworkUse {
    const counters = this.#gates.get(vmId)?.counters;
    return { rxBytes: counters?.bytesToGuest ?? 0, txBytes: counters?.bytesFromGuest ?? 0 };
  }

  /** No policy means the profile's. A profile without rules lets nothing through. */
  async #policyOf(vm: EngineVm): Promise<EgressPolicy> {
    const kind = vm.record.egress_policy ?? "profile";
    if (kind !== "profile") return await loadEgressPolicy({ kind });
    const { egressPath } = await this.#profiles.get(vm.record.profile ?? "");
    return existsSync(egressPath) ? await loadEgressPolicy({ kind, profilePath: egressPath }) : DENY_ALL;
  }

  #end(vmId: string): void {
    this.#gates.get(vmId)?.[Symbol.dispose]();
    this.#gates.delete(vmId);
  }
}
