import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256OfFile } from "../../../../src/base/file-hash.ts";
import { DiskFloor } from "../../../../src/engine/disk-floor.ts";
import { jsonError, vmNotFound } from "../../../../src/engine/engine-error.ts";
import type { RestoreOrder, SnapshotVm, SnapshotVms } from "../../../../src/engine/snapshots/snapshot-vms.ts";
import { type SnapshotParts, Snapshots } from "../../../../src/engine/snapshots/snapshots.ts";
import { Tenants } from "../../../../src/engine/tenants/tenants.ts";
import type { SealedFile } from "../../../../src/vm/file-seal.ts";
import { FakeMemory } from "../../../support/fake-memory.ts";
import { TemporaryDirectory } from "../../../support/temporary-directory.ts";

export const { signal: FOREVER } = new AbortController();
export const FULL = { type: "full", tenantId: undefined, stopAfter: false } as const;
export const DIFF = { ...FULL, type: "diff" } as const;
export const AUTO = { ...FULL, type: "" } as const;
export const AS_IT_WAS = { tenantId: undefined, egressPolicy: undefined };
const ROOTFS = "root file system of all hosts";

/** A restored VM, with the memory it was given. */
export interface Restored {
  vmId: string;
  order: RestoreOrder;
  memory: Uint8Array;
  state: string;
}

/** One on which no more than some bytes may be written at once. */
class SmallDisk extends DiskFloor {
  readonly #roomBytes: () => number | null;

  constructor(path: string, floorBytes: number, roomBytes: () => number | null) {
    super(path, floorBytes);
    this.#roomBytes = roomBytes;
  }

  override async require(neededBytes = 0): Promise<void> {
    if (neededBytes > (this.#roomBytes() ?? Number.POSITIVE_INFINITY))
      throw jsonError(507, "disk_full", "insufficient disk space");
    await super.require(neededBytes);
  }
}

/** A work directory and VMs without guests. */
export class FakeHost extends TemporaryDirectory implements SnapshotVms<Restored> {
  readonly rootPath = this.join("engine");
  readonly memories = new Map<string, FakeMemory>();
  readonly restored = new Map<string, Restored>();
  readonly warnings: string[] = [];
  readonly vmFields: Partial<SnapshotVm> = {};
  rootfs!: SealedFile;
  /** Why the root cannot be had */
  rootfsFailure: Error | null = null;
  tenants!: Tenants;
  snapshots!: Snapshots<Restored>;
  /** Thrown by the next restore */
  failure: unknown = null;
  floorBytes = 0;
  /** What the disk has to give above its floor; null for what there is */
  roomBytes: number | null = null;
  importIdleMs = 60_000;

  static async open(rootfs = ROOTFS): Promise<FakeHost> {
    const host = new FakeHost();
    const path = host.join("rootfs.ext4");
    mkdirSync(host.rootPath);
    writeFileSync(path, rootfs);
    host.rootfs = { path, bytes: rootfs.length, sha256: await sha256OfFile(path) };
    await host.restart();
    return host;
  }

  /** Opens the directory as the next engine does. */
  async restart(): Promise<void> {
    this.tenants = await Tenants.open(this.join("tenants.json"), this.parts.log);
    this.snapshots = await Snapshots.open(this.parts);
  }

  get parts(): SnapshotParts<Restored> {
    const ignore = () => undefined;
    const warn = (_: object, message: string) => void this.warnings.push(message);
    const { rootPath, tenants, floorBytes, importIdleMs } = this;
    const disk = new SmallDisk(rootPath, floorBytes, () => this.roomBytes);
    const log = { debug: ignore, info: ignore, warn, error: warn };
    const rootfs = async () => {
      if (this.rootfsFailure) throw this.rootfsFailure;
      return this.rootfs;
    };
    return { rootPath, vms: this, tenants, disk, rootfs, importIdleMs, log };
  }

  /** A VM whose first pages are not those of its base. */
  start(vmId: string): FakeMemory {
    const memory = new FakeMemory(this.rootfs);
    for (let page = 0; page < 4; page++) memory.write(page, 10 + page);
    this.memories.set(vmId, memory);
    return memory;
  }

  get(vmId: string): SnapshotVm {
    const memory = this.memories.get(vmId);
    if (!memory) throw vmNotFound();
    return {
      id: vmId,
      tenantId: undefined,
      profile: "shell",
      egressPolicy: undefined,
      guestIp: "10.0.1.2",
      agentToken: "secret of the agent",
      copyBytes: async () => memory.bytes.byteLength,
      copy: (work, signal) => work(memory, signal),
      ...this.vmFields,
    };
  }

  async restore(order: RestoreOrder): Promise<Restored> {
    if (this.failure) throw this.failure;
    const dir = join(order.source.storePath, "snapshots", order.source.name);
    const restored = {
      vmId: `vm-${900 + this.restored.size}`,
      order,
      memory: new Uint8Array(readFileSync(join(dir, "memory.bin"))),
      state: readFileSync(join(dir, "state.bin"), "utf8"),
    };
    this.restored.set(restored.vmId, restored);
    return restored;
  }

  async remove(vmId: string): Promise<void> {
    this.memories.delete(vmId);
    this.restored.delete(vmId);
  }

  restoredFrom(id: string): string[] {
    return [...this.restored.values()].filter(({ order }) => order.snapshotId === id).map(({ vmId }) => vmId);
  }

  /** Everything in the directory of snapshots, hidden names included */
  names(): string[] {
    return readdirSync(join(this.rootPath, "snapshots")).sort();
  }

  at(...names: string[]): string {
    return join(this.rootPath, "snapshots", ...names);
  }

  /** A bundle, read to its end. */
  async bundle(id: string): Promise<Uint8Array> {
    const { stream, bytes } = await this.snapshots.export(id, FOREVER);
    const bundle = await new Response(stream).bytes();
    if (bundle.byteLength !== bytes)
      throw new Error(`${bundle.byteLength} bytes came, ${bytes} were promised`);
    return bundle;
  }

  import(bundle: Uint8Array) {
    return this.snapshots.import(new Response(bundle.slice().buffer).body!, FOREVER);
  }
}
