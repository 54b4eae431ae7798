import { constants } from "node:fs";
import { type FileHandle, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BaseManifest } from "./base-manifest.ts";
import { describeFile } from "./file-seal.ts";
import { STATE_FILE } from "./machine-spec.ts";
import { damageOf, type OpenBase } from "./open-base.ts";
import { saveRunningState } from "./qemu/migration.ts";
import type { RunningMachine } from "./running-machine.ts";
import { copySparsely } from "./sparse-copy.ts";
import { continueMachine, stopMachine } from "./stop-machine.ts";
import { VmError } from "./vm-error.ts";
import { VmmMemory } from "./vmm-memory.ts";

/** A real one has less than 0.1 MiB. */
export const MAX_STATE_BYTES = 16 * 1_048_576;

/** Where a capture goes. Neither file exists before. */
export interface CaptureFiles {
  memoryPath: string;
  statePath: string;
}

export interface Capture {
  /** Size and hash of what is on disk now */
  files: BaseManifest["files"];
  /** To disk, the copy of the parent's memory included */
  bytesWritten: number;
  /** Of those, pages the machine had written since it was cloned */
  pageBytes: number;
  /** How long the guest's processes stood still, in `ms` */
  pausedMs: number;
  /** False when all memory was written, since nobody knows what the machine was cloned from */
  hasParent: boolean;
}

/** Pages a machine had written, in their places of a file that is a hole elsewhere. */
export interface WrittenPages {
  ranges: FileRange[];
  pageBytes: number;
  pausedMs: number;
}

/** A stretch of memory.bin, in `bytes`; both are multiples of the page size. */
export interface FileRange {
  offset: number;
  bytes: number;
}

/** How a machine's memory gets into a file: what was copied before it stopped, and what has to be afterwards. */
interface MemoryCopy {
  file: FileHandle;
  copiedBytes: number;
  hasParent: boolean;
}

/**
 * Puts the whole memory and the device state of a running machine into two files; it goes on afterwards unless it
 * `staysStill`. `base` is what it was cloned from. Everything slow is before or after the pause. The files are the caller's to remove when it rejects.
 */
export async function captureMachine(
  base: OpenBase,
  machine: RunningMachine,
  { memoryPath, statePath }: CaptureFiles,
  signal: AbortSignal,
): Promise<Capture> {
  using memory = VmmMemory.open(machine.pid, base.manifest.memoryBytes);
  const copy = await copyParent(base, memory, memoryPath, signal);
  await using _file = copy.file;
  const { result: pageBytes, pausedMs } = await holdStill(machine, async () => {
    await saveRunningState(machine.qmp, join(machine.dir, STATE_FILE));
    const extents = copy.hasParent ? memory.writtenExtents() : memory.allExtents();
    return await memory.copyTo(copy.file.fd, extents, !copy.hasParent);
  });
  await takeState(join(machine.dir, STATE_FILE), statePath);
  const files = {
    memory: await describeFile(memoryPath, signal),
    state: await describeFile(statePath, signal),
  };
  const bytesWritten = copy.copiedBytes + pageBytes + files.state.bytes;
  return { files, bytesWritten, pageBytes, pausedMs, hasParent: copy.hasParent };
}

/** As `captureMachine`, but only the pages the machine has written since it was cloned. Their file is not synced. */
export async function captureWrittenPages(
  base: OpenBase,
  machine: RunningMachine,
  { memoryPath, statePath }: CaptureFiles,
  signal: AbortSignal,
): Promise<WrittenPages> {
  signal.throwIfAborted();
  using memory = VmmMemory.open(machine.pid, base.manifest.memoryBytes);
  await using file = await open(memoryPath, "wx", 0o600);
  await file.truncate(base.manifest.memoryBytes);
  const { result, pausedMs } = await holdStill(machine, async () => {
    await saveRunningState(machine.qmp, join(machine.dir, STATE_FILE));
    const extents = memory.writtenExtents();
    return { extents, pageBytes: await memory.copyTo(file.fd, extents, true) };
  });
  await takeState(join(machine.dir, STATE_FILE), statePath);
  const ranges = result.extents.map(({ fileOffset, bytes }) => ({ offset: fileOffset, bytes }));
  return { ranges, pageBytes: result.pageBytes, pausedMs };
}

/** The slow part: hundreds of MiB where the file system cannot share blocks. */
async function copyParent(
  base: OpenBase,
  memory: VmmMemory,
  path: string,
  signal: AbortSignal,
): Promise<MemoryCopy> {
  await using parent = await openParent(base, memory);
  if (!parent) {
    const file = await open(path, "wx", 0o600);
    await file.truncate(base.manifest.memoryBytes);
    return { file, copiedBytes: 0, hasParent: false };
  }
  const damaged = await damageOf(base, signal);
  if (damaged) {
    throw new VmError(
      "base_damaged",
      `'${base.name}', which this session was cloned from, is damaged: ${damaged.path} is not what its manifest says. Open a new session`,
    );
  }
  const copiedBytes = await copySparsely(parent, path, signal);
  return { file: await open(path, "r+"), copiedBytes, hasParent: true };
}

/** Null when the file the machine runs on has no name any more: its base was rebuilt or removed. */
async function openParent(base: OpenBase, memory: VmmMemory): Promise<FileHandle | null> {
  let file: FileHandle;
  try {
    file = await open(base.paths.memoryPath, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  if ((await file.stat({ bigint: true })).ino === memory.inode) return file;
  await file.close();
  return null;
}

/** The machine goes on afterwards, unless `work` succeeds and it is to stay. */
async function holdStill<T>(
  machine: RunningMachine,
  work: () => Promise<T>,
): Promise<{ result: T; pausedMs: number }> {
  const { agent } = machine;
  const heldAt = performance.now();
  let staysStill = false;
  let result: T;
  await agent.hold();
  try {
    await stopMachine(machine);
    result = await work();
    staysStill = machine.staysStill;
  } finally {
    // When QEMU does not let it go on, the deadlines of calls find that out.
    if (!staysStill) await continueMachine(machine).finally(() => agent.time.goOn());
  }
  return { result, pausedMs: performance.now() - heldAt };
}

/**
 * Moves what QEMU wrote out of its directory, where it may put anything: a link there must not make us read for it what
 * it may not read itself.
 */
async function takeState(from: string, to: string): Promise<void> {
  try {
    await using file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { size } = await file.stat();
    const state = new Uint8Array(Math.min(size, MAX_STATE_BYTES + 1));
    const { bytesRead } = await file.read(state, 0, state.byteLength, 0);
    if (bytesRead !== size || size === 0 || size > MAX_STATE_BYTES)
      throw new VmError(
        "checkpoint_failed",
        `QEMU's device state has ${size} bytes, of which ${bytesRead} can be had`,
      );
    await writeFile(to, state, { flag: "wx", mode: 0o600 });
  } finally {
    await rm(from, { recursive: true, force: true });
  }
}
