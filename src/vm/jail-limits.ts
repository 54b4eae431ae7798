import { readFileSync } from "node:fs";
import type { JailRequest } from "./jail-request.ts";

/** Libraries, translated code, thread stacks and allocator arenas, mostly address space that is never touched */
const OVERHEAD_BYTES = 2 * 1024 * 1_048_576;
/** Far above the device state of a machine, the only thing a VMM writes to a file by write(2) */
const MAX_FILE_BYTES = 64 * 1_048_576;
/** Sockets, the base's files and the disk, some twenty */
const MAX_DESCRIPTORS = 128;
/** The user-mode network takes one for each of the guest's connections. */
const MAX_DESCRIPTORS_WITH_NET = 1024;

/**
 * Argv of prlimit in front of the rest. Processes are not limited this way: the kernel counts all of a user's, and
 * QEMU's seccomp filter lets it start threads only.
 */
export function limitsArgv(
  path: string,
  { memoryBytes, net }: Pick<JailRequest, "memoryBytes" | "net">,
  present = readFileSync("/proc/self/limits", "latin1"),
): string[] {
  // Nobody but root may raise a limit.
  const atMost = (wanted: number, name: string) => Math.min(wanted, hardLimit(present, name));
  return [
    path,
    "--core=0",
    `--as=${atMost(memoryBytes + OVERHEAD_BYTES, "Max address space")}`,
    `--fsize=${atMost(MAX_FILE_BYTES, "Max file size")}`,
    `--nofile=${atMost(net ? MAX_DESCRIPTORS_WITH_NET : MAX_DESCRIPTORS, "Max open files")}`,
    "--",
  ];
}

/** From a text in the form of /proc/<pid>/limits: name, soft limit, hard limit, unit. */
function hardLimit(text: string, name: string): number {
  const line = text.split("\n").find((candidate) => candidate.startsWith(name)) ?? "";
  const hard = line.slice(name.length).trim().split(/\s+/)[1] ?? "unlimited";
  return hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
}
