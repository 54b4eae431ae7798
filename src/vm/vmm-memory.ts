import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { MEMORY_FILE } from "./machine-spec.ts";
import {
  coversExactly,
  type Extent,
  type MappedFile,
  pageBytesOf,
  privateExtents,
  privatelyMapped,
} from "./private-pages.ts";
import { writeAll, writeNonZero } from "./sparse-copy.ts";
import { VmError } from "./vm-error.ts";

const MIB = 1_048_576;
const PAGEMAP_ENTRY_BYTES = 8;
const PIECE_BYTES = MIB;
/** Other sessions get a turn after this many bytes */
const BYTES_PER_TURN = 8 * MIB;

/** A clone's RAM as its VMM has it: memory.bin mapped privately, some of its pages replaced. Linux only. */
export class VmmMemory implements Disposable {
  readonly #file: MappedFile;
  readonly #memory: number;
  readonly #pagemap: number;
  readonly #pageBytes = pageBytesOf(readFileSync("/proc/self/auxv"));

  private constructor(file: MappedFile, memory: number, pagemap: number) {
    this.#file = file;
    this.#memory = memory;
    this.#pagemap = pagemap;
  }

  /** `pid` is QEMU's own. Throws with `checkpoint_failed` where the kernel does not let us look. */
  static open(pid: number, memoryBytes: number): VmmMemory {
    const opened: number[] = [];
    try {
      const file = privatelyMapped(readFileSync(`/proc/${pid}/maps`, "latin1"), MEMORY_FILE);
      if (!file || !coversExactly(file.mappings, memoryBytes))
        throw new Error(`it does not map ${memoryBytes} bytes of ${MEMORY_FILE}`);
      for (const name of ["mem", "pagemap"]) opened.push(openSync(`/proc/${pid}/${name}`, "r"));
      return new VmmMemory(file, opened[0]!, opened[1]!);
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw new VmError(
        "checkpoint_failed",
        `the VMM's memory cannot be read: ${(error as Error).message}. Checkpoints need Linux and a kernel that lets a process look into its children`,
        error,
      );
    }
  }

  /** Of the memory.bin it maps, which another file of that name may have replaced since */
  get inode(): bigint {
    return this.#file.inode;
  }

  /** What the clone has written since it was made, as of now. Meaningful while it is stopped. */
  writtenExtents(): Extent[] {
    return this.#file.mappings.flatMap((mapping) => {
      const entries = new Uint8Array(((mapping.end - mapping.start) / this.#pageBytes) * PAGEMAP_ENTRY_BYTES);
      readFully(this.#pagemap, entries, (mapping.start / this.#pageBytes) * PAGEMAP_ENTRY_BYTES);
      return privateExtents(entries, mapping, this.#pageBytes);
    });
  }

  allExtents(): Extent[] {
    return this.#file.mappings.map(({ start, end, fileOffset }) => ({
      address: start,
      fileOffset,
      bytes: end - start,
    }));
  }

  /** Copies extents to their places in an open file. Resolves with how many bytes it wrote. */
  async copyTo(file: number, extents: Extent[], skipZeros: boolean): Promise<number> {
    const piece = new Uint8Array(PIECE_BYTES);
    let writtenBytes = 0;
    let turnBytes = 0;
    for (const { address, fileOffset, bytes } of extents) {
      for (let at = 0; at < bytes; at += PIECE_BYTES) {
        const part = piece.subarray(0, Math.min(PIECE_BYTES, bytes - at));
        readFully(this.#memory, part, address + at);
        writtenBytes += skipZeros
          ? writeNonZero(file, part, fileOffset + at)
          : writeAll(file, part, fileOffset + at);
        turnBytes += part.byteLength;
        if (turnBytes < BYTES_PER_TURN) continue;
        turnBytes = 0;
        await new Promise(setImmediate);
      }
    }
    return writtenBytes;
  }

  [Symbol.dispose](): void {
    closeSync(this.#memory);
    closeSync(this.#pagemap);
  }
}

function readFully(fd: number, into: Uint8Array, position: number): void {
  for (let at = 0; at < into.byteLength; ) {
    const count = readSync(fd, into, at, into.byteLength - at, position + at);
    if (count === 0) throw new RangeError(`nothing to read at ${position + at}`);
    at += count;
  }
}
