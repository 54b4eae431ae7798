import { writeFileSync } from "node:fs";
import type { MachineCopier } from "../../src/engine/vms/machine-copier.ts";
import type { BaseManifest } from "../../src/vm/base-manifest.ts";
import type { Capture, CaptureFiles, FileRange, WrittenPages } from "../../src/vm/capture-machine.ts";
import { describeFile, type SealedFile } from "../../src/vm/file-seal.ts";

const PAGE_BYTES = 4096;
const PAGES = 128;
const NONE = "0".repeat(64);

/** Memory of a machine without a guest, that can be written to and captured. */
export class FakeMemory implements MachineCopier {
  readonly base: MachineCopier["base"];
  readonly rootfs: SealedFile;
  readonly bytes: Uint8Array;
  readonly #written = new Set<number>();
  /** Awaited by each capture, when its first file is there */
  gate: Promise<void> = Promise.resolve();
  /** Thrown by each capture, when its first file is there */
  failure: Error | null = null;

  constructor(rootfs: SealedFile, bytes = new Uint8Array(PAGES * PAGE_BYTES)) {
    this.rootfs = rootfs;
    this.bytes = bytes;
    this.base = { name: "tools-base", manifest: fakeManifest(rootfs.sha256, bytes.byteLength) };
  }

  write(page: number, fill: number): void {
    this.bytes.fill(fill, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
    this.#written.add(page);
  }

  async captureMachine({ memoryPath, statePath }: CaptureFiles, signal: AbortSignal): Promise<Capture> {
    await this.#putFiles(memoryPath, statePath, this.bytes, signal);
    const files = { memory: await describeFile(memoryPath), state: await describeFile(statePath) };
    return { files, bytesWritten: 0, pageBytes: 0, pausedMs: 0, hasParent: true };
  }

  async captureWrittenPages(
    { memoryPath, statePath }: CaptureFiles,
    signal: AbortSignal,
  ): Promise<WrittenPages> {
    const pages = new Uint8Array(this.bytes.byteLength);
    const ranges: FileRange[] = [];
    for (const page of this.#written) {
      const offset = page * PAGE_BYTES;
      pages.set(this.bytes.subarray(offset, offset + PAGE_BYTES), offset);
      ranges.push({ offset, bytes: PAGE_BYTES });
    }
    await this.#putFiles(memoryPath, statePath, pages, signal);
    return { ranges, pageBytes: ranges.length * PAGE_BYTES, pausedMs: 0 };
  }

  async #putFiles(
    memoryPath: string,
    statePath: string,
    memory: Uint8Array,
    signal: AbortSignal,
  ): Promise<void> {
    writeFileSync(memoryPath, memory, { flag: "wx" });
    await this.gate;
    signal.throwIfAborted();
    if (this.failure) throw this.failure;
    writeFileSync(statePath, `state after ${this.#written.size} writes`, { flag: "wx" });
  }
}

/** Of a base with files nobody has. */
export function fakeManifest(rootfsSha256: string, memoryBytes: number): BaseManifest {
  return {
    format: 1,
    kind: "base",
    name: "tools-base",
    created: "2026-01-01T00:00:00.000Z",
    protocol: 1,
    agentBuild: "fake",
    image: { kernel: NONE, initramfs: NONE, rootfs: rootfsSha256 },
    vmm: { version: "10.0.0", acceleration: "tcg", hostCpu: null, machine: ["-M", "fake"] },
    memoryBytes,
    cpus: 1,
    net: false,
    files: { memory: { bytes: memoryBytes, sha256: NONE }, state: { bytes: 1, sha256: NONE } },
  };
}
