import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { acquireLock } from "../base/owned-lock.ts";
import { EngineError } from "./engine-error.ts";

const UNFINISHED = /\.tmp-[0-9a-f-]{36}$/;

/** Where the engine keeps everything that lasts. Layout: docs/wire/state-directory.md. */
export interface WorkPaths {
  root: string;
  vms: string;
  snapshots: string;
  flocks: string;
  audit: string;
  tenants: string;
}

export function workPaths(root: string): WorkPaths {
  return {
    root,
    vms: join(root, "vms"),
    snapshots: join(root, "snapshots"),
    flocks: join(root, "flocks"),
    audit: join(root, "audit"),
    tenants: join(root, "tenants.json"),
  };
}

/** Makes the directories and takes the lock, which one engine holds at a time. Rejects when another one has it. */
export async function openWorkDirectory(paths: WorkPaths): Promise<AsyncDisposable> {
  try {
    return await openDirectory(paths);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError(
      500,
      "work_directory",
      `the work directory ${paths.root} cannot be used: ${(error as Error).message}. Put that right, or set IGN_ENGINE_DIR to another directory`,
      error,
    );
  }
}

async function openDirectory({ root, vms, snapshots, flocks, audit }: WorkPaths): Promise<AsyncDisposable> {
  for (const path of [root, vms, snapshots, flocks, audit])
    await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(root, 0o700);
  const lock = await takeLock(root);
  await sweepUnfinished(root);
  return lock;
}

/** What a crash left of files that were being replaced. */
async function sweepUnfinished(root: string): Promise<void> {
  for (const name of await readdir(root, { recursive: true }))
    if (UNFINISHED.test(name)) await rm(join(root, name), { force: true });
}

async function takeLock(root: string): Promise<AsyncDisposable> {
  const waiting = new AbortController();
  return await acquireLock(join(root, "engine.lock"), waiting.signal, (holder) => {
    waiting.abort(
      new EngineError(
        500,
        "engine_running",
        `another engine (process ${holder.split("-")[0]}) works in ${root}. End it, or set IGN_ENGINE_DIR to another directory`,
      ),
    );
  });
}
