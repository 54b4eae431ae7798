import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory, writeFileAtomically } from "../base/atomic-file.ts";
import { acquireLock } from "../base/owned-lock.ts";
import type { Config } from "../config/config.ts";
import { verifyImage } from "../image/image.ts";
import { accelerationCandidates, firstThatWorks } from "./acceleration.ts";
import { type BaseManifest, rebuildHint } from "./base-manifest.ts";
import { type BasePaths, baseFilesIn, basePaths, snapshotsDir } from "./base-store.ts";
import { isCheckpointId } from "./checkpoint-store.ts";
import { cloneBase } from "./clone-base.ts";
import { describeFile } from "./file-seal.ts";
import type { Acceleration } from "./machine-spec.ts";
import { expectedBase, findGround, type Ground, machineSpec, type OpenBase, openBase } from "./open-base.ts";
import { RuntimeDirectory } from "./runtime-directory.ts";
import { snapshotWarmGuest } from "./snapshot-warm-guest.ts";
import { VmError } from "./vm-error.ts";

export interface BuildOptions {
  name: string;
  /** Rebuild even when a fitting base is there */
  force: boolean;
  /** Short states for a person, such as "booting under tcg" */
  progress: (message: string) => void;
  signal: AbortSignal;
}

/**
 * Makes the base `name`, unless a fitting one is there. Concurrent builds of one name wait for each other.
 * A base appears whole, tried by a clone, or not at all; a failed build leaves the old one.
 */
export async function buildBase(config: Config, options: BuildOptions): Promise<OpenBase> {
  const { name, force, progress, signal } = options;
  if (isCheckpointId(name)) {
    throw new VmError(
      "base_build_failed",
      `'${name}' is a checkpoint, and only a session can make one. Give the base another name`,
    );
  }
  const ground = await findGround(config);
  await mkdir(snapshotsDir(config.storePath), { recursive: true });
  const paths = basePaths(config.storePath, name);
  await using _lock = await acquireLock(paths.lockPath, signal, () =>
    progress("waiting for another build of this base"),
  );
  if (!force) {
    const present = await fittingBase(config, ground, name, progress);
    if (present) return present;
  }
  progress("checking the image");
  await verifyImage(ground.image, signal);
  return await buildWithFirstThatBoots(config, ground, paths, options);
}

async function fittingBase(
  config: Config,
  ground: Ground,
  name: string,
  progress: BuildOptions["progress"],
): Promise<OpenBase | null> {
  try {
    return await openBase(config, ground, name);
  } catch (error) {
    if (!(error instanceof VmError)) throw error;
    progress(`replacing the present base: ${error.message}`);
    return null;
  }
}

async function buildWithFirstThatBoots(
  config: Config,
  ground: Ground,
  paths: BasePaths,
  options: BuildOptions,
): Promise<OpenBase> {
  const failures: string[] = [];
  const built = await firstThatWorks(
    accelerationCandidates(config.accel),
    (acceleration) => buildUnder(acceleration, config, ground, paths, options),
    (acceleration, error) => {
      options.signal.throwIfAborted();
      if (!(error instanceof VmError)) throw error;
      failures.push(`${acceleration}: ${error.message}`);
      options.progress(`${acceleration} does not work here: ${error.message}`);
    },
  );
  if (built) return built;
  throw new VmError(
    "base_build_failed",
    `base '${options.name}' could not be built. ${failures.join("; ")}. Check the image: scripts/build-image`,
  );
}

async function buildUnder(
  acceleration: Acceleration,
  config: Config,
  ground: Ground,
  paths: BasePaths,
  { name, progress, signal }: BuildOptions,
): Promise<OpenBase> {
  const spec = machineSpec(config, acceleration);
  const buildDir = join(snapshotsDir(config.storePath), `.${name}.building`);
  const building: BasePaths = { ...baseFilesIn(buildDir), lockPath: paths.lockPath };
  await rm(buildDir, { recursive: true, force: true });
  await mkdir(buildDir);
  try {
    using runtime = RuntimeDirectory.open();
    await createMemoryFile(building.memoryPath, config.memoryBytes);
    await snapshotWarmGuest({ ...ground, spec, buildDir, runtime, progress, signal });
    progress("hashing the snapshot");
    const manifest: BaseManifest = {
      format: 1,
      kind: "base",
      name,
      created: new Date().toISOString(),
      ...expectedBase(config, ground, spec),
      files: {
        memory: await describeFile(building.memoryPath),
        state: await describeFile(building.statePath),
      },
    };
    progress("trying a clone");
    await tryClone({ ...ground, name, paths: building, manifest, spec }, runtime, signal);
    await writeFileAtomically(building.manifestPath, `${JSON.stringify(manifest, null, 2)}\n`);
    await publish(buildDir, paths.dir);
    const base = await openBase(config, ground, name, signal);
    if (!base)
      throw new VmError(
        "base_build_failed",
        `base '${name}' vanished while it was built. ${rebuildHint(name)}`,
      );
    return base;
  } finally {
    await rm(buildDir, { recursive: true, force: true });
  }
}

/** Sparse: only pages the guest writes take space. */
async function createMemoryFile(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.truncate(bytes);
}

/** A base that boots but cannot be cloned is no base. */
async function tryClone(base: OpenBase, runtime: RuntimeDirectory, signal: AbortSignal): Promise<void> {
  try {
    await using vm = await cloneBase(base, runtime, signal);
    await vm.awaken(signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new VmError(
      "base_build_failed",
      `a clone of the new base does not work: ${(error as Error).message}`,
      error,
    );
  }
}

/** rename(2) cannot replace a directory that is not empty, so the old base steps aside first. */
async function publish(buildDir: string, finalDir: string): Promise<void> {
  const asideDir = `${buildDir}.old`;
  await rm(asideDir, { recursive: true, force: true });
  try {
    await rename(finalDir, asideDir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  await rename(buildDir, finalDir);
  await syncDirectory(join(finalDir, ".."));
  await rm(asideDir, { recursive: true, force: true });
}
