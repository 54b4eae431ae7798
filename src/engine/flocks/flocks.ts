import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../../base/atomic-file.ts";
import type { Logger } from "../../base/logger.ts";
import { jsonError } from "../engine-error.ts";
import { writeJsonFile } from "../json-file.ts";
import { nanoId } from "../nano-id.ts";
import type { Profiles } from "../profiles/profiles.ts";
import type { Tenants } from "../tenants/tenants.ts";
import type { VmTable } from "../vms/vm-table.ts";
import { Flock, flockNotFound, METADATA_FILE_NAME, removeMetadata } from "./flock.ts";
import { type FlockRecord, nextAgentId } from "./flock-record.ts";
import type { FlockRequest } from "./flock-request.ts";
import { flockOpenedBy, GuestToken } from "./guest-token.ts";
import { MemberVms } from "./member-vms.ts";
import { readFlockRecords } from "./read-flock-records.ts";
import { TownWall } from "./wall/town-wall.ts";

export interface FlocksParts {
  dir: string;
  vms: VmTable;
  profiles: Profiles;
  tenants: Tenants;
  wall: { maxBytes: number; keep: number };
  log: Logger;
}

/** All flocks of this engine, by id. */
export class Flocks {
  readonly #parts: FlocksParts;
  readonly #members: MemberVms;
  readonly #flocks = new Map<string, Flock>();
  readonly #creations = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();

  constructor(parts: FlocksParts) {
    this.#parts = parts;
    this.#members = new MemberVms(parts);
  }

  /** The oldest first. Throws 503 once the engine ends: none would be taken for all that there are. */
  list(): Flock[] {
    this.#ending.signal.throwIfAborted();
    return [...this.#flocks.values()].filter((flock) => !flock.isEnding);
  }

  /** Throws 404 for an unknown id, 503 once the engine ends. */
  get(id: string): Flock {
    this.#ending.signal.throwIfAborted();
    const flock = this.#flocks.get(id);
    if (flock === undefined || flock.isEnding) throw flockNotFound();
    return flock;
  }

  /** Also of one that is being removed; undefined for an unknown one. */
  tenantOf(id: string): string | undefined {
    return this.#flocks.get(id)?.record.tenant_id;
  }

  /** One VM after another; nobody is told of the flock before all are there. Rejects with nothing left. */
  async create(request: FlockRequest, signal: AbortSignal): Promise<Flock> {
    const created = this.#create(request, AbortSignal.any([signal, this.#ending.signal]));
    this.#creations.add(created);
    try {
      return await created;
    } finally {
      this.#creations.delete(created);
    }
  }

  /** Ends all its VMs. Rejects with 404 for an unknown id; after another failure it can be tried again. */
  async remove(id: string): Promise<void> {
    this.#ending.signal.throwIfAborted();
    const flock = this.#flocks.get(id);
    if (flock === undefined) throw flockNotFound();
    await flock.delete();
    this.#flocks.delete(id);
  }

  /** Whose token it is, for a route of its wall; null for any other token or route. */
  clientOf(token: string, method: string, path: string): string | null {
    const flockId = flockOpenedBy(method, path);
    const flock = flockId === null ? undefined : this.#flocks.get(flockId);
    return flock?.token.isThis(token) ? `flock:${flockId}` : null;
  }

  /** Goes on with what an earlier engine left, when its VMs are there. What was half made or half removed goes. */
  async recover(): Promise<void> {
    const { dir, log } = this.#parts;
    const { records, unreadable } = await readFlockRecords(dir, log);
    const ready = new Map<string, FlockRecord>();
    for (const record of records.filter(({ state }) => state === "ready")) ready.set(record.flock_id, record);
    await this.#members.endOrphans(ready, unreadable);
    for (const record of records) {
      const { flock_id: id, state } = record;
      if (state === "ready") await this.#goOnWith(record);
      else if (state === "deleting") await removeMetadata(join(dir, id));
      else await rm(join(dir, id), { recursive: true, force: true });
      if (state !== "ready")
        log.warn({ flock_id: id, state }, "a flock that was half made or half removed is gone");
    }
  }

  /** Readers of walls get their end. VMs are not touched. */
  async close(): Promise<void> {
    const reason = jsonError(503, "engine_ending", "the engine is ending");
    this.#ending.abort(reason);
    await Promise.allSettled(this.#creations);
    await Promise.all([...this.#flocks.values()].map((flock) => flock.close(reason)));
  }

  async #create(request: FlockRequest, signal: AbortSignal): Promise<Flock> {
    const wanted: { role: string; profile: string | undefined }[] = [];
    for (const [at, role] of request.roles.entries())
      wanted.push({ role, profile: await this.#members.profileFor(role, request.profiles?.[at]) });
    this.#parts.tenants.admit(request.tenant_id, "active_vms", wanted.length);
    const record = newRecord(request);
    const dir = join(this.#parts.dir, record.flock_id);
    await mkdir(dir, { mode: 0o700 });
    const vmIds: string[] = [];
    let flock: Flock | null = null;
    try {
      await syncDirectory(this.#parts.dir);
      await writeRecord(dir, record);
      for (const { role, profile } of wanted) {
        const { agentId, numbers } = nextAgentId(record.numbers, role);
        const vm = await this.#members.spawn(record, agentId, profile, signal);
        vmIds.push(vm.id);
        record.numbers = numbers;
        record.agents[agentId] = { agent_id: agentId, role, profile, vm_id: vm.id };
      }
      flock = await this.#open({ ...record, state: "ready" }, dir);
      signal.throwIfAborted();
      await writeRecord(dir, flock.record);
      this.#flocks.set(record.flock_id, flock);
      return flock;
    } catch (error) {
      await flock?.wall.close();
      await this.#rollBack(record.flock_id, vmIds);
      throw error;
    }
  }

  /** What cannot be undone now is undone by the next engine. */
  async #rollBack(flockId: string, vmIds: readonly string[]): Promise<void> {
    const { dir, log } = this.#parts;
    try {
      await this.#members.endAll(vmIds);
      await rm(join(dir, flockId), { recursive: true, force: true });
    } catch (error) {
      log.error({ err: error, flock_id: flockId }, "a flock that failed could not be taken back whole");
    }
  }

  /** One that cannot be read now is left as it is for the next engine: it must not keep this one from starting. */
  async #goOnWith(record: FlockRecord): Promise<void> {
    const { dir, log } = this.#parts;
    try {
      const flock = await this.#open(record, join(dir, record.flock_id));
      this.#flocks.set(record.flock_id, flock);
      await flock.reconcile();
    } catch (error) {
      log.error({ err: error, flock_id: record.flock_id }, "a flock could not be gone on with as it was");
    }
  }

  async #open(record: FlockRecord, dir: string): Promise<Flock> {
    const { wall: limits, log } = this.#parts;
    const token = await GuestToken.open(dir);
    const wall = await TownWall.open(dir, { ...limits, log });
    return new Flock(record, dir, { wall, token, members: this.#members });
  }
}

function newRecord({ task, tenant_id, egress_policy, max_agents }: FlockRequest): FlockRecord {
  return {
    schema_version: 1,
    flock_id: nanoId("flock-"),
    state: "creating",
    task,
    tenant_id,
    egress_policy,
    max_agents,
    paused: false,
    agents: {},
    numbers: [],
    created_at: new Date().toISOString(),
  };
}

async function writeRecord(dir: string, record: FlockRecord): Promise<void> {
  await writeJsonFile(join(dir, METADATA_FILE_NAME), record);
}
