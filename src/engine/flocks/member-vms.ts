import type { Logger } from "../../base/logger.ts";
import { EngineError, jsonError } from "../engine-error.ts";
import type { Profiles } from "../profiles/profiles.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import type { VmTable } from "../vms/vm-table.ts";
import { FLOCK_ID, type FlockRecord } from "./flock-record.ts";

/** Tells programs in the guest who they are, as KEY=value lines. */
const IDENTITY_PATH = "/root/.ephemera-flock";

/** Makes and ends the VMs of flocks' members. */
export class MemberVms {
  readonly #vms: VmTable;
  readonly #profiles: Profiles;
  readonly #log: Logger;

  constructor(parts: { vms: VmTable; profiles: Profiles; log: Logger }) {
    this.#vms = parts.vms;
    this.#profiles = parts.profiles;
    this.#log = parts.log;
  }

  /**
   * The profile a member's VM is made with: the one asked for, else the one that is named as its role, else undefined
   * for the default one. Rejects with 400 when the one asked for does not exist.
   */
  async profileFor(role: string, asked: string | undefined): Promise<string | undefined> {
    if (asked) return (await this.#profiles.get(asked)).name;
    return (await this.#profiles.has(role)) ? role : undefined;
  }

  /** A VM that knows its flock. Rejects with nothing left. */
  async spawn(
    flock: FlockRecord,
    agentId: string,
    profile: string | undefined,
    signal: AbortSignal,
  ): Promise<EngineVm> {
    const { flock_id: flockId, tenant_id: tenantId, egress_policy: egressPolicy } = flock;
    try {
      const vm = await this.#vms.create(
        { profile: profile ?? "", tenantId, egressPolicy, flockId, agentId },
        signal,
      );
      try {
        const identity = `FLOCK_ID=${flockId}\nAGENT_ID=${agentId}\n`;
        await vm.machine.putFile(IDENTITY_PATH, new TextEncoder().encode(identity), signal);
      } catch (error) {
        await this.end(vm.id);
        throw error;
      }
      return vm;
    } catch (error) {
      signal.throwIfAborted();
      throw spawnFailed(agentId, error as Error);
    }
  }

  /** Nothing happens when it is gone already. */
  async end(vmId: string): Promise<void> {
    if (this.#vms.has(vmId)) await this.#vms.remove(vmId);
  }

  /** Ends all of them; rejects with the first failure when each has been tried. */
  async endAll(vmIds: readonly string[]): Promise<void> {
    const ends = await Promise.allSettled(vmIds.map((vmId) => this.end(vmId)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** VMs that were made for a flock, members or not. */
  madeFor(flockId: string): EngineVm[] {
    return this.#vms.list().filter(({ record }) => record.flock_id === flockId);
  }

  /** Ends the VMs of flocks that are not there, and those that are no members of theirs: nobody was told of them. */
  async endOrphans(flocks: ReadonlyMap<string, FlockRecord>, unreadable: ReadonlySet<string>): Promise<void> {
    for (const { id, record } of this.#vms.list()) {
      const flockId = record.flock_id ?? "";
      if (!FLOCK_ID.test(flockId) || unreadable.has(flockId)) continue;
      const members = Object.values(flocks.get(flockId)?.agents ?? {});
      if (members.some(({ vm_id }) => vm_id === id)) continue;
      await this.end(id);
      this.#log.warn(
        { vm_id: id, flock_id: flockId },
        "a VM that was made for a flock and is no member was ended",
      );
    }
  }
}

function spawnFailed(agentId: string, error: Error): Error {
  if (error instanceof EngineError && error.code !== "spawn_failed") return error;
  return jsonError(500, "spawn_failed", `agent ${agentId}: ${error.message}`, {}, error);
}
