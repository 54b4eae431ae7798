import {
  type Capture,
  type CaptureFiles,
  captureMachine,
  captureWrittenPages,
  type WrittenPages,
} from "../../vm/capture-machine.ts";
import type { SealedFile } from "../../vm/file-seal.ts";
import { type OpenBase, rootFileOf } from "../../vm/open-base.ts";
import type { RunningMachine } from "../../vm/running-machine.ts";

/** A machine that can be put into files. */
export interface MachineCopier {
  /** What it was cloned from */
  readonly base: Pick<OpenBase, "name" | "manifest">;
  /** Its root file system, checked when it was cloned */
  readonly rootfs: SealedFile;
  captureMachine(files: CaptureFiles, signal: AbortSignal): Promise<Capture>;
  captureWrittenPages(files: CaptureFiles, signal: AbortSignal): Promise<WrittenPages>;
}

/** Of a real machine that is a clone of `base`. */
export function copierOf(machine: RunningMachine, base: OpenBase): MachineCopier {
  return {
    base,
    rootfs: rootFileOf(base.image),
    captureMachine: (files, signal) => captureMachine(base, machine, files, signal),
    captureWrittenPages: (files, signal) => captureWrittenPages(base, machine, files, signal),
  };
}
