import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sha256OfFile } from "../base/file-hash.ts";
import { type BaseManifest, readBaseManifest, rebuildHint } from "./base-manifest.ts";
import { MEMORY_FILE, STATE_FILE } from "./machine-spec.ts";
import { VmError } from "./vm-error.ts";

/** Where a base's files are. Layout: docs/wire/state-directory.md. */
export interface BasePaths {
  dir: string;
  memoryPath: string;
  statePath: string;
  manifestPath: string;
  /** What findDamage remembers */
  sealPath: string;
  lockPath: string;
}

export function snapshotsDir(storePath: string): string {
  return join(storePath, "snapshots");
}

export function basePaths(storePath: string, name: string): BasePaths {
  const dir = join(snapshotsDir(storePath), name);
  return {
    dir,
    memoryPath: join(dir, MEMORY_FILE),
    statePath: join(dir, STATE_FILE),
    manifestPath: join(dir, "manifest.json"),
    sealPath: join(dir, "verified.json"),
    lockPath: join(snapshotsDir(storePath), `.${name}.lock`),
  };
}

export interface ListedBase {
  name: string;
  /** Null when the manifest cannot be read; `problem` says why */
  manifest: BaseManifest | null;
  problem: string | null;
  /** Space taken on disk; memory.bin is sparse */
  diskBytes: number;
}

export async function listBases(config: { storePath: string }): Promise<ListedBase[]> {
  let names: string[];
  try {
    names = await readdir(snapshotsDir(config.storePath));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  const visible = names.filter((name) => !name.startsWith(".")).sort();
  return await Promise.all(visible.map((name) => describeBase(config.storePath, name)));
}

async function describeBase(storePath: string, name: string): Promise<ListedBase> {
  const paths = basePaths(storePath, name);
  const sizes = await Promise.all([paths.memoryPath, paths.statePath].map(diskBytes));
  const listed = { name, diskBytes: sizes.reduce((sum, bytes) => sum + bytes, 0) };
  try {
    const manifest = await readBaseManifest(paths.manifestPath, name);
    return { ...listed, manifest, problem: manifest ? null : "it has no manifest" };
  } catch (error) {
    return { ...listed, manifest: null, problem: (error as Error).message };
  }
}

async function diskBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

/** Rejects with `base_missing` when there is none. Clones that run go on: they hold its files open. */
export async function removeBase(config: { storePath: string }, name: string): Promise<void> {
  const { dir } = basePaths(config.storePath, name);
  try {
    await rm(dir, { recursive: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new VmError(
      "base_missing",
      `there is no base '${name}' in ${config.storePath}. List them: ignition-mcp base ls`,
    );
  }
}

/** Reads every byte of a base. Rejects with `base_missing` or `base_damaged`. */
export async function verifyBaseFiles(storePath: string, name: string): Promise<BaseManifest> {
  const paths = basePaths(storePath, name);
  const manifest = await readBaseManifest(paths.manifestPath, name);
  if (!manifest) {
    throw new VmError(
      "base_missing",
      `there is no base '${name}' in ${storePath}. Build it: ignition-mcp base build ${name}`,
    );
  }
  const { memory, state } = manifest.files;
  for (const [path, expected] of [
    [paths.memoryPath, memory],
    [paths.statePath, state],
  ] as const) {
    if ((await sha256OrNull(path)) !== expected.sha256) {
      throw new VmError(
        "base_damaged",
        `base '${name}' is damaged: ${path} is not what its manifest says. ${rebuildHint(name)}`,
      );
    }
  }
  return manifest;
}

async function sha256OrNull(path: string): Promise<string | null> {
  try {
    return await sha256OfFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
