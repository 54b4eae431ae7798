import { rm, stat } from "node:fs/promises";
import type { Config } from "../config/config.ts";
import { ImageError } from "../image/image-error.ts";
import { readBaseManifest } from "./base-manifest.ts";
import { baseMissing, baseNames, basePaths } from "./base-store.ts";
import { isCheckpointId } from "./checkpoint-store.ts";
import { findGround, openBase } from "./open-base.ts";
import { VmError } from "./vm-error.ts";

const BLOCK_BYTES = 512;

/** One base in the store, for a person. */
export interface ListedBase {
  name: string;
  /** "base" or "checkpoint" */
  kind: string;
  /** RFC 3339; empty when the manifest cannot be read */
  createdAt: string;
  /** On disk, in `bytes`; memory.bin is sparse */
  sizeBytes: number;
  accel: string;
  /** Why this binary cannot use it; null when it can */
  unusable: string | null;
}

export async function listBases(config: Config): Promise<ListedBase[]> {
  const names = await baseNames(config.storePath);
  return await Promise.all(names.map((name) => describeBase(config, name)));
}

/** Reads every byte of a base and of its image; resolves with what is wrong, nothing when it can be used. */
export async function verifyBase(config: Config, name: string): Promise<string[]> {
  const { sealPath, manifestPath } = basePaths(config.storePath, name);
  // Without its seal, every file is hashed again.
  await rm(sealPath, { force: true });
  if ((await readBaseManifest(manifestPath, name).catch(() => "unreadable")) === null) {
    throw baseMissing(config.storePath, name);
  }
  const problem = await problemOf(config, name);
  return problem === null ? [] : [problem];
}

async function describeBase(config: Config, name: string): Promise<ListedBase> {
  const paths = basePaths(config.storePath, name);
  const sizes = await Promise.all([paths.memoryPath, paths.statePath].map(diskBytes));
  const manifest = await readBaseManifest(paths.manifestPath, name).catch(() => null);
  return {
    name,
    kind: manifest?.kind ?? (isCheckpointId(name) ? "checkpoint" : "base"),
    createdAt: manifest?.created ?? "",
    sizeBytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
    accel: manifest?.vmm.acceleration ?? "",
    unusable: manifest
      ? await problemOf({ ...config, net: manifest.net }, name)
      : "its manifest cannot be read",
  };
}

async function problemOf(config: Config, name: string): Promise<string | null> {
  try {
    await openBase(config, await findGround(config), name);
    return null;
  } catch (error) {
    if (error instanceof VmError || error instanceof ImageError) return error.message;
    throw error;
  }
}

async function diskBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * BLOCK_BYTES;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
