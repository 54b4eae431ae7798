import { Fault } from "../base/fault.ts";

export type VmErrorCode =
  /** QEMU is not installed, or too old */
  | "vmm_missing"
  /** QEMU ended, or refused what it was told */
  | "vmm_failed"
  /** The image's files are missing or are not what its manifest says */
  | "image_invalid"
  | "base_missing"
  /** The base was made for another binary, QEMU, image or setting */
  | "base_mismatch"
  /** The base's own files are not what its manifest says */
  | "base_damaged"
  | "base_build_failed"
  | "clone_failed"
  /** Too little memory for a clone nobody asked for */
  | "memory_short"
  /** No checkpoint has this id */
  | "checkpoint_missing"
  /** The store takes no more checkpoints */
  | "checkpoint_cap"
  | "checkpoint_failed"
  /** No directory for sockets that is writable and short enough */
  | "runtime_dir"
  /** It stands still on its owner's wish */
  | "paused"
  | "closed";

export class VmError extends Fault<VmErrorCode> {}
