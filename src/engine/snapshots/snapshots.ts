import { join } from "node:path";
import type { Logger } from "../../base/logger.ts";
import type { DiskFloor } from "../disk-floor.ts";
import { isDiskError, withDiskErrors } from "../disk-full.ts";
import { EngineError, jsonError } from "../engine-error.ts";
import { nanoId } from "../nano-id.ts";
import type { Tenants } from "../tenants/tenants.ts";
import { importFailed, tooManyImports } from "./bundle-error.ts";
import { collectSnapshots, type GcReport } from "./collect-snapshots.ts";
import { exportFailed, exportSnapshot } from "./export-snapshot.ts";
import type { GcPolicy } from "./gc-plan.ts";
import { type Imported, importSnapshot } from "./import-snapshot.ts";
import { MergedDiffs } from "./merged-diffs.ts";
import { OneAtATime } from "./one-at-a-time.ts";
import { type RestoreRequest, restoreSnapshot } from "./restore-snapshot.ts";
import { objectOf, type Snapshot, type SnapshotObject, type SnapshotType } from "./snapshot-record.ts";
import { SnapshotStore } from "./snapshot-store.ts";
import type { SnapshotVms } from "./snapshot-vms.ts";
import { type RootFile, unsoundness } from "./sound-snapshot.ts";
import { chooseParent, takeSnapshot } from "./take-snapshot.ts";

/** At once */
const MAX_IMPORTS = 4;
const IMPORT_IDLE_MS = 60_000;

export interface SnapshotParts<Info> {
  /** The work directory; holds `snapshots/` and `merged/` */
  rootPath: string;
  vms: SnapshotVms<Info>;
  tenants: Pick<Tenants, "admit" | "measure">;
  disk: DiskFloor;
  /** The root file system all VMs of this host share */
  rootfs(): Promise<RootFile>;
  /** How long the sender of a bundle may send nothing, in `ms`; default 60 s */
  importIdleMs?: number;
  log: Logger;
}

export interface TakeRequest {
  type: SnapshotType | "";
  tenantId: string | undefined;
  stopAfter: boolean;
}

/** All snapshots of an engine. What makes, uses or removes one happens one after another. */
export class Snapshots<Info> {
  readonly #parts: SnapshotParts<Info>;
  readonly #store: SnapshotStore;
  readonly #merged: MergedDiffs;
  readonly #lifecycle = new OneAtATime();
  readonly #lifetime = new AbortController();
  /** Those that are under way */
  readonly #imports = new Set<Promise<unknown>>();

  private constructor(parts: SnapshotParts<Info>, store: SnapshotStore, merged: MergedDiffs) {
    this.#parts = parts;
    this.#store = store;
    this.#merged = merged;
    const ofTenant = (id: string) => store.list().filter(({ metadata }) => metadata.tenant_id === id);
    parts.tenants.measure("snapshot_count", (id) => ofTenant(id).length);
    parts.tenants.measure("snapshot_bytes", (id) =>
      ofTenant(id).reduce((sum, each) => sum + each.diskBytes, 0),
    );
  }

  /** Clears away what a dead engine left half made. */
  static async open<Info>(parts: SnapshotParts<Info>): Promise<Snapshots<Info>> {
    const store = await SnapshotStore.open(join(parts.rootPath, "snapshots"), parts.log);
    const isDiff = (id: string) => store.get(id)?.metadata.snapshot_type === "diff";
    return new Snapshots(parts, store, await MergedDiffs.open(join(parts.rootPath, "merged"), isDiff));
  }

  get count(): number {
    return this.#store.list().length;
  }

  /** Undefined for one without a tenant, and for an unknown id. */
  tenantOf(id: string): string | undefined {
    return this.#store.get(id)?.metadata.tenant_id;
  }

  list(): SnapshotObject[] {
    return this.#store.list().map(objectOf);
  }

  /** Of a running VM, which goes on unless `stopAfter` is wanted. */
  take(
    vmId: string,
    { type, tenantId, stopAfter }: TakeRequest,
    signal: AbortSignal,
  ): Promise<SnapshotObject> {
    return this.#alone(signal, async (untilEnd) => {
      const { vms, tenants, disk } = this.#parts;
      const vm = vms.get(vmId);
      if (tenantId !== undefined && tenantId !== vm.tenantId)
        throw jsonError(403, "tenant_mismatch", "tenant_id does not match VM tenant");
      const parent = chooseParent(this.#store.latestFull(vmId), type);
      await disk.require(await vm.copyBytes(parent ? "diff" : "full"));
      tenants.admit(vm.tenantId, "snapshot_count");
      const id = nanoId("snap-");
      const admit = async (diskBytes: number) => {
        tenants.admit(vm.tenantId, "snapshot_bytes", diskBytes);
        await disk.require();
      };
      const order = { id, parent, store: this.#store, staysStill: stopAfter, admit };
      const snapshot = await takeSnapshot(vm, order, untilEnd).catch((error) => {
        throw takeFailure(error, untilEnd);
      });
      if (stopAfter) await this.#endStopped(vmId);
      return objectOf(snapshot);
    });
  }

  /** The snapshot is there, whatever becomes of a VM that does nothing any more. */
  async #endStopped(vmId: string): Promise<void> {
    try {
      await this.#parts.vms.remove(vmId);
    } catch (error) {
      this.#parts.log.error({ err: error, vm_id: vmId }, "a VM was not ended after its snapshot");
    }
  }

  /** Rejects with 404, or with 409 when something stands on it. */
  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.#alone(signal, async () => {
      const snapshot = this.#get(id);
      const [diff] = this.#store.diffsOf(id);
      if (diff) throw jsonError(409, "snapshot_in_use", `snapshot is referenced by diff snapshot ${diff.id}`);
      const [vmId] = this.#parts.vms.restoredFrom(id);
      if (vmId !== undefined)
        throw jsonError(409, "snapshot_in_use", `snapshot is in use by restored VM ${vmId}`);
      await this.#store.remove(snapshot);
    });
  }

  restore(id: string, request: RestoreRequest, signal: AbortSignal): Promise<Info> {
    const { rootPath, vms, disk, rootfs } = this.#parts;
    const parts = { store: this.#store, merged: this.#merged, rootPath, vms, disk, rootfs };
    return this.#alone(signal, (untilEnd) => restoreSnapshot(parts, id, request, untilEnd));
  }

  /** The stream may outlast the snapshot. */
  export(id: string, signal: AbortSignal): Promise<{ bytes: number; stream: ReadableStream<Uint8Array> }> {
    return this.#alone(signal, async (untilEnd) => {
      const snapshot = this.#store.get(id);
      if (!snapshot) throw jsonError(404, "snapshot_not_found", "snapshot_not_found");
      try {
        const rootfs = await this.#parts.rootfs();
        const unsound = await unsoundness(snapshot, rootfs, untilEnd);
        if (unsound !== null) throw exportFailed(unsound);
        return await exportSnapshot(snapshot, rootfs);
      } catch (error) {
        throw isAnswer(error, untilEnd) ? error : exportFailed((error as Error).message, error);
      }
    });
  }

  /**
   * Only its last step keeps others waiting: a slow sender does not. Each one looks at the disk for itself, so there are few
   * at once.
   */
  async import(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<Imported> {
    const { tenants, disk, rootfs, importIdleMs = IMPORT_IDLE_MS } = this.#parts;
    if (this.#imports.size >= MAX_IMPORTS) throw tooManyImports(MAX_IMPORTS);
    const untilEnd = AbortSignal.any([signal, this.#lifetime.signal]);
    const parts = {
      store: this.#store,
      disk,
      rootfs,
      idleMs: importIdleMs,
      admit: (tenantId: string | undefined, diskBytes: number) => {
        tenants.admit(tenantId, "snapshot_count");
        tenants.admit(tenantId, "snapshot_bytes", diskBytes);
      },
      alone: <T>(work: () => Promise<T>) => this.#lifecycle.run(work, untilEnd),
    };
    const importing = withDiskErrors(() => importSnapshot(parts, body, untilEnd));
    this.#imports.add(importing);
    try {
      return await importing;
    } catch (error) {
      throw isAnswer(error, untilEnd) ? error : importFailed(error as Error);
    } finally {
      this.#imports.delete(importing);
    }
  }

  collect(policy: GcPolicy, apply: boolean, signal: AbortSignal): Promise<GcReport> {
    return this.#alone(signal, () =>
      collectSnapshots(
        {
          snapshots: this.#store.list(),
          hasVm: (id) => this.#parts.vms.restoredFrom(id).length > 0,
          remove: (snapshot) => this.#store.remove(snapshot),
          auditPath: join(this.#store.dir, "gc-audit.jsonl"),
        },
        policy,
        apply,
      ),
    );
  }

  /** Gives up what is under way. Resolves when nothing is. */
  async close(): Promise<void> {
    this.#lifetime.abort(jsonError(503, "engine_ending", "the engine is ending"));
    await Promise.allSettled([this.#lifecycle.idle(), ...this.#imports]);
  }

  #get(id: string): Snapshot {
    const snapshot = this.#store.get(id);
    if (snapshot) return snapshot;
    throw jsonError(404, "snapshot_not_found", "snapshot not found");
  }

  #alone<T>(signal: AbortSignal, work: (untilEnd: AbortSignal) => Promise<T>): Promise<T> {
    const untilEnd = AbortSignal.any([signal, this.#lifetime.signal]);
    return this.#lifecycle.run(async () => {
      await this.#merged.sweep((id) => this.#parts.vms.restoredFrom(id).length > 0);
      return await withDiskErrors(() => work(untilEnd));
    }, untilEnd);
  }
}

/** Whether the client can be told it as it is. */
function isAnswer(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || error instanceof EngineError || isDiskError(error);
}

/** Whatever the machine or its files are to blame for. */
function takeFailure(error: unknown, signal: AbortSignal): unknown {
  if (isAnswer(error, signal)) return error;
  const { message } = error as Error;
  return jsonError(500, "snapshot_failed", `snapshot failed: ${message}`, {}, error);
}
