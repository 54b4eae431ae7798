import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "../../base/logger.ts";
import type { ProcessIdentity } from "../../base/process-identity.ts";
import { within } from "../../base/wait.ts";
import type { Config } from "../../config/config.ts";
import { buildBase } from "../../vm/base-builder.ts";
import { basePaths } from "../../vm/base-store.ts";
import { endVmmsIn } from "../../vm/end-vmms-in.ts";
import type { SealedFile } from "../../vm/file-seal.ts";
import { adoptLasting, cloneLasting, type LastingVm } from "../../vm/lasting-vm.ts";
import { endVmm } from "../../vm/lasting-vmm.ts";
import { findGround, findRootFile, machineSpec, type OpenBase, openBase } from "../../vm/open-base.ts";
import { RuntimeDirectory, removeIfEmpty } from "../../vm/runtime-directory.ts";
import { jsonError } from "../engine-error.ts";
import { LastingMachine } from "./lasting-machine.ts";
import type { Machine, MachinePlace, MachineSource, Machines } from "./machine.ts";
import type { MachineRecord } from "./vm-record.ts";

/** As long as a server waits for one */
const BUILD_DEADLINE_MS = 600_000;
const VM_ID_PREFIX = "vm-";

/** Real machines: clones of bases and snapshots in QEMU processes that outlive the engine. */
export class LastingMachines implements Machines {
  readonly #config: Config;
  readonly #log: Logger;
  /** Of this work directory only: two engines may share the directory of sockets */
  readonly #engineName: string;
  /** Bases that are being built, so that one build serves all who wait */
  readonly #builds = new Map<string, Promise<OpenBase>>();

  #hasToldGaps = false;

  constructor(config: Config, workDir: string, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#engineName = `e-${createHash("sha256").update(workDir).digest("hex").slice(0, 8)}`;
  }

  socketDirFor(vmId: string): string {
    const number = BigInt(vmId.slice(VM_ID_PREFIX.length));
    return join(RuntimeDirectory.lastingPath(this.#engineName), number.toString(36));
  }

  async requireGround(): Promise<void> {
    await findGround(this.#config);
  }

  async start(source: MachineSource, place: MachinePlace, signal: AbortSignal): Promise<Machine> {
    const base = await this.#open(source, signal);
    return this.#watch(await cloneLasting(base, place, signal), base, source.storePath, place);
  }

  async adopt(known: MachineRecord, place: MachinePlace, signal: AbortSignal): Promise<Machine> {
    const base = await this.#knownBase(known);
    const lasting = await adoptLasting(base, { ...known, place }, signal);
    return this.#watch(lasting, base, known.origin.storePath, place);
  }

  #watch(lasting: LastingVm, base: OpenBase, storePath: string, { socketDir }: MachinePlace): LastingMachine {
    return new LastingMachine(lasting, base, storePath, () => removeEmptyParents(socketDir));
  }

  rootfs(): Promise<SealedFile> {
    return findRootFile(this.#config);
  }

  async clear(vmm: ProcessIdentity | null, socketDir: string): Promise<void> {
    if (vmm !== null) await endVmm(vmm);
    await endVmmsIn(socketDir);
    await rm(socketDir, { recursive: true, force: true });
    removeEmptyParents(socketDir);
  }

  /** As it was when the machine was made: the files may be gone or others by now, which copying finds out. */
  async #knownBase({ origin }: MachineRecord): Promise<OpenBase> {
    const { storePath, name, manifest } = origin;
    const { memoryBytes, cpus, net } = manifest;
    const config = { ...this.#config, storePath, memoryBytes, cpus, net };
    const spec = machineSpec(config, manifest.vmm.acceleration);
    return { ...(await findGround(config)), name, paths: basePaths(storePath, name), manifest, spec };
  }

  async #open(source: MachineSource, signal: AbortSignal): Promise<OpenBase> {
    const { storePath, name, memoryBytes, cpus } = source;
    const config = { ...this.#config, storePath, memoryBytes, cpus };
    const ground = await findGround(config);
    const { kind, gaps } = ground.jail;
    if (gaps.length > 0 && !this.#hasToldGaps)
      this.#log.warn({ jail: kind }, `VMMs are confined less than they could be: ${gaps.join("; ")}`);
    this.#hasToldGaps = true;
    const base = await openBase(config, ground, name, signal);
    if (base) return base;
    if (!source.isBuildable) throw jsonError(404, "snapshot_not_found", "snapshot not found");
    const build = this.#builds.get(name) ?? this.#build(config, name);
    return await within(build, BUILD_DEADLINE_MS, "the base", signal);
  }

  #build(config: Config, name: string): Promise<OpenBase> {
    const progress = (message: string) => this.#log.info({ base: name }, message);
    // Whoever gives up waiting does not stop it for the others.
    const built = buildBase(config, { name, force: false, progress, signal: new AbortController().signal });
    this.#builds.set(name, built);
    return built.finally(() => this.#builds.delete(name));
  }
}

/** The engine's directory and the one of all servers go with their last VM. */
function removeEmptyParents(socketDir: string): void {
  removeIfEmpty(dirname(socketDir));
  removeIfEmpty(dirname(dirname(socketDir)));
}
