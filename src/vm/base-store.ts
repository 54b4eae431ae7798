import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { MEMORY_FILE, STATE_FILE } from "./machine-spec.ts";
import { VmError } from "./vm-error.ts";

/** A base's files in one directory. Layout: docs/wire/state-directory.md. */
export interface BaseFiles {
  dir: string;
  memoryPath: string;
  statePath: string;
  manifestPath: string;
  /** What findDamage remembers */
  sealPath: string;
}

export interface BasePaths extends BaseFiles {
  lockPath: string;
}

export function snapshotsDir(storePath: string): string {
  return join(storePath, "snapshots");
}

export function basePaths(storePath: string, name: string): BasePaths {
  const dir = snapshotsDir(storePath);
  return { ...baseFilesIn(join(dir, name)), lockPath: join(dir, `.${name}.lock`) };
}

export function baseFilesIn(dir: string): BaseFiles {
  return {
    dir,
    memoryPath: join(dir, MEMORY_FILE),
    statePath: join(dir, STATE_FILE),
    manifestPath: join(dir, "manifest.json"),
    sealPath: join(dir, "verified.json"),
  };
}

/** Names of all bases, whether they can be used or not. */
export async function baseNames(storePath: string): Promise<string[]> {
  try {
    const names = await readdir(snapshotsDir(storePath));
    return names.filter((name) => !name.startsWith(".")).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Rejects with `base_missing` when there is none. Clones that run go on: they hold its files open. */
export async function removeBase(config: { storePath: string }, name: string): Promise<void> {
  // A name with slashes or dots in it must not lead out of the store.
  if (!(await baseNames(config.storePath)).includes(name)) throw baseMissing(config.storePath, name);
  await rm(basePaths(config.storePath, name).dir, { recursive: true, force: true });
}

export function baseMissing(storePath: string, name: string): VmError {
  return new VmError(
    "base_missing",
    `there is no base '${name}' in ${storePath}. List them: ignition-mcp base ls; build it: ignition-mcp base build ${name}`,
  );
}
