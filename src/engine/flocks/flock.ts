import { rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../../base/atomic-file.ts";
import { type EngineError, jsonError } from "../engine-error.ts";
import { writeJsonFile } from "../json-file.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { type FlockRecord, type MemberRecord, nextAgentId } from "./flock-record.ts";
import type { AgentRequest } from "./flock-request.ts";
import type { GuestToken } from "./guest-token.ts";
import type { MemberVms } from "./member-vms.ts";
import type { TownWall } from "./wall/town-wall.ts";
import { SYSTEM_AUTHOR, type WallMessage } from "./wall/wall-message.ts";

export const METADATA_FILE_NAME = "metadata.json";

/** One flock: its record on disk, its wall, and its members' VMs. What changes it is done one after another. */
export class Flock {
  readonly dir: string;
  readonly wall: TownWall;
  readonly token: GuestToken;
  readonly #members: MemberVms;
  #ending = new AbortController();
  readonly #spawning = new Set<string>();
  #record: FlockRecord;
  #turn: Promise<unknown> = Promise.resolve();
  #deletion: Promise<void> | null = null;

  constructor(
    record: FlockRecord,
    dir: string,
    parts: { wall: TownWall; token: GuestToken; members: MemberVms },
  ) {
    this.#record = record;
    this.dir = dir;
    this.wall = parts.wall;
    this.token = parts.token;
    this.#members = parts.members;
  }

  get record(): Readonly<FlockRecord> {
    return this.#record;
  }

  get isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  readonly isSpawning = (agentId: string): boolean => this.#spawning.has(agentId);

  /** Rejects with 403 for an author who is no member. */
  async post(agentId: string, body: string): Promise<WallMessage> {
    if (agentId === SYSTEM_AUTHOR || !Object.hasOwn(this.#record.agents, agentId))
      throw jsonError(403, "not_a_member", `agent ${agentId} is not a member of this flock`);
    return await this.wall.post(agentId, body);
  }

  /** A member more. Rejects with 409 when there are as many as there may be. */
  add({ role, profile: asked }: AgentRequest, signal: AbortSignal): Promise<MemberRecord> {
    return this.#inTurn(signal, async (untilEnd) => {
      this.#mustNotBePaused();
      const { agents, max_agents, numbers: before } = this.#record;
      if (Object.keys(agents).length >= max_agents)
        throw jsonError(409, "flock_full", `the flock has ${max_agents} agents, which is its max_agents`);
      const profile = await this.#members.profileFor(role, asked);
      const { agentId, numbers } = nextAgentId(before, role);
      await this.#spawn({ agent_id: agentId, role, profile }, numbers, untilEnd);
      return this.#memberOf(agentId);
    });
  }

  /** Its VM is gone when this resolves. */
  removeMember(agentId: string, signal: AbortSignal): Promise<void> {
    return this.#inTurn(signal, async () => {
      const { vm_id } = this.#memberOf(agentId);
      const { [agentId]: _removed, ...agents } = this.#record.agents;
      await this.#members.end(vm_id);
      await this.#save({ agents });
    });
  }

  /** Gives a member a new VM, and another role if one is said; it keeps its id. Without a VM when this rejects. */
  replace(agentId: string, change: AgentRequest | null, signal: AbortSignal): Promise<EngineVm> {
    return this.#inTurn(signal, async (untilEnd) => {
      this.#mustNotBePaused();
      const member = this.#memberOf(agentId);
      const role = change?.role ?? member.role;
      const profile = change ? await this.#members.profileFor(role, change.profile) : member.profile;
      this.#spawning.add(agentId);
      try {
        await this.#members.end(member.vm_id);
        return await this.#spawn({ agent_id: agentId, role, profile }, this.#record.numbers, untilEnd);
      } finally {
        this.#spawning.delete(agentId);
      }
    });
  }

  /** Lets every member's VM stand still, or go on; resolves with how many do. All of them or none. */
  setPaused(paused: boolean, signal: AbortSignal): Promise<number> {
    return this.#inTurn(signal, () => this.#setPaused(paused));
  }

  /** After a restart: what was said of the flock becomes true of all its VMs. */
  async reconcile(): Promise<void> {
    await this.#setPaused(this.#record.paused);
  }

  /** Ends all its VMs. The log of its wall stays. When they cannot be ended, it is still there. */
  delete(): Promise<void> {
    this.#ending.abort(flockNotFound());
    this.#deletion ??= this.#turn
      .then(() => this.#delete())
      .catch((error) => {
        this.#deletion = null;
        if (this.#record.state === "ready") this.#ending = new AbortController();
        throw error;
      });
    return this.#deletion;
  }

  /** Lets go of it; the next engine goes on with it. */
  async close(reason: Error): Promise<void> {
    this.#ending.abort(reason);
    await this.#turn;
    await this.#deletion?.catch(() => undefined);
    await this.wall.close();
  }

  async #delete(): Promise<void> {
    await this.#save({ state: "deleting" });
    try {
      await this.#members.endAll(this.#members.madeFor(this.#record.flock_id).map(({ id }) => id));
    } catch (error) {
      await this.#save({ state: "ready" });
      throw error;
    }
    await this.wall.close();
    await removeMetadata(this.dir);
  }

  async #spawn(
    member: Omit<MemberRecord, "vm_id">,
    numbers: FlockRecord["numbers"],
    signal: AbortSignal,
  ): Promise<EngineVm> {
    const vm = await this.#members.spawn(this.#record, member.agent_id, member.profile, signal);
    try {
      const agents = { ...this.#record.agents, [member.agent_id]: { ...member, vm_id: vm.id } };
      await this.#save({ agents, numbers });
      return vm;
    } catch (error) {
      await this.#members.end(vm.id);
      throw error;
    }
  }

  async #setPaused(paused: boolean): Promise<number> {
    const before = this.#record.paused;
    if (before !== paused) await this.#save({ paused });
    const vms = this.#members.madeFor(this.#record.flock_id).filter((vm) => vm.isRunning);
    const changed = vms.filter((vm) => vm.record.paused !== paused);
    const set = (vm: EngineVm, toPaused: boolean) => (toPaused ? vm.pause() : vm.resume());
    const ends = await Promise.allSettled(changed.map((vm) => set(vm, paused)));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed === undefined) return vms.length;
    await this.#save({ paused: before });
    await Promise.allSettled(changed.filter((vm) => vm.isRunning).map((vm) => set(vm, before)));
    throw (failed as PromiseRejectedResult).reason;
  }

  #memberOf(agentId: string): MemberRecord {
    const member = Object.hasOwn(this.#record.agents, agentId) ? this.#record.agents[agentId] : undefined;
    if (member) return member;
    throw jsonError(404, "agent_not_found", "agent not found");
  }

  #mustNotBePaused(): void {
    if (this.#record.paused) throw jsonError(409, "flock_paused", "flock is paused");
  }

  /** The record in memory is what is on disk, also when writing fails. */
  async #save(change: Partial<FlockRecord>): Promise<void> {
    const next = { ...this.#record, ...change };
    await writeJsonFile(join(this.dir, METADATA_FILE_NAME), next);
    this.#record = next;
  }

  #inTurn<T>(signal: AbortSignal, work: (untilEnd: AbortSignal) => Promise<T>): Promise<T> {
    const untilEnd = AbortSignal.any([signal, this.#ending.signal]);
    const done = this.#turn.then(() => {
      untilEnd.throwIfAborted();
      return work(untilEnd);
    });
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

export function flockNotFound(): EngineError {
  return jsonError(404, "flock_not_found", "flock not found");
}

/** From here on there is no such flock; its wall's log stays. */
export async function removeMetadata(dir: string): Promise<void> {
  await rm(join(dir, METADATA_FILE_NAME), { force: true });
  await rm(join(dir, "guest-token"), { force: true });
  await syncDirectory(dir);
}
