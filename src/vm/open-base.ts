import { cpus } from "node:os";
import type { Config } from "../config/config.ts";
import { PROTOCOL_VERSION } from "../guest/agent-protocol.ts";
import { type Image, openImage } from "../image/image.ts";
import {
  type BaseManifest,
  type ExpectedBase,
  mismatch,
  readBaseManifest,
  rebuildHint,
} from "./base-manifest.ts";
import { type BasePaths, basePaths } from "./base-store.ts";
import { findDamage, type SealedFile } from "./file-seal.ts";
import { findJail, type Jail } from "./jail.ts";
import type { Acceleration, MachineSpec } from "./machine-spec.ts";
import { machineFingerprint } from "./qemu/argv.ts";
import { findQemu, type QemuProgram } from "./qemu/find-qemu.ts";
import { VmError } from "./vm-error.ts";

/** What building and cloning stand on: found once, and the same for every VM of a server. */
export interface Ground {
  qemu: QemuProgram;
  jail: Jail;
  image: Image;
}

/** A base that fits and is intact. */
export interface OpenBase extends Ground {
  name: string;
  paths: BasePaths;
  manifest: BaseManifest;
  spec: MachineSpec;
}

export async function findGround(config: Config): Promise<Ground> {
  // One after the other, so that nothing runs on when one of them fails.
  const image = await openImage(config);
  const qemu = await findQemu();
  return { image, qemu, jail: await findJail(qemu) };
}

/** Null when there is no base of this name. Rejects with `base_mismatch` or `base_damaged`; such a base is never used. */
export async function openBase(
  config: Config,
  ground: Ground,
  name: string,
  signal?: AbortSignal,
): Promise<OpenBase | null> {
  const paths = basePaths(config.storePath, name);
  const manifest = await readBaseManifest(paths.manifestPath, name);
  if (!manifest) return null;
  const spec = machineSpec(config, manifest.vmm.acceleration);
  const reason = mismatch(manifest, {
    ...expectedBase(config, ground, spec),
    vmm: expectedVmm(ground, spec, config.accel),
  });
  if (reason !== null)
    throw new VmError("base_mismatch", `base '${name}' cannot be used: ${reason}. ${rebuildHint(name)}`);
  const base: OpenBase = { ...ground, name, paths, manifest, spec };
  const damaged = await damageOf(base, signal);
  if (damaged) {
    throw new VmError(
      "base_damaged",
      `base '${name}' is damaged: ${damaged.path} is not what its manifest says. ${rebuildHint(name)}`,
    );
  }
  return base;
}

/** The first file a clone of this base reads that is not what it should be, or null. */
export function damageOf(base: OpenBase, signal?: AbortSignal): Promise<SealedFile | null> {
  return findDamage(sealedFilesOf(base), base.paths.sealPath, signal);
}

/** Device state, memory, root: what a clone of this base reads. */
export function sealedFilesOf({ paths, manifest, image }: OpenBase): SealedFile[] {
  return [
    { path: paths.statePath, ...manifest.files.state },
    { path: paths.memoryPath, ...manifest.files.memory },
    rootFileOf(image),
  ];
}

/** The root file system that all clones of an image read. */
export function rootFileOf({ rootfsPath, manifest }: Image): SealedFile {
  const { bytes, sha256 } = manifest.rootfs;
  return { path: rootfsPath, bytes, sha256 };
}

/** As of the configured image, whose files are looked for but not read. */
export async function findRootFile(config: Config): Promise<SealedFile> {
  return rootFileOf(await openImage(config));
}

export function machineSpec(config: Config, acceleration: Acceleration): MachineSpec {
  const { memoryBytes, cpus, net, rootfsPath } = config;
  return { acceleration, memoryBytes, cpus, net, rootfsPath };
}

/** The parts of a manifest that follow from what is here now. */
export function expectedBase(
  config: Config,
  ground: Ground,
  spec: MachineSpec,
): Omit<BaseManifest, "format" | "kind" | "name" | "created" | "parent" | "files"> {
  const { kernel, initramfs, rootfs, agent } = ground.image.manifest;
  return {
    protocol: PROTOCOL_VERSION,
    agentBuild: agent.build,
    image: { kernel: kernel.sha256, initramfs: initramfs.sha256, rootfs: rootfs.sha256 },
    vmm: { ...expectedVmm(ground, spec, spec.acceleration), acceleration: spec.acceleration },
    memoryBytes: config.memoryBytes,
    cpus: config.cpus,
    net: config.net,
  };
}

function expectedVmm(
  ground: Ground,
  spec: MachineSpec,
  acceleration: Acceleration | null,
): ExpectedBase["vmm"] {
  const hostCpu = spec.acceleration === "tcg" ? null : (cpus()[0]?.model ?? "unknown");
  return { version: ground.qemu.version, acceleration, hostCpu, machine: machineFingerprint(spec) };
}
