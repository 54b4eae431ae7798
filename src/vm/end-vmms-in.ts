import { readdirSync, readFileSync } from "node:fs";
import { identityOf } from "../base/process-identity.ts";
import { endVmm } from "./lasting-vmm.ts";

/**
 * Ends the VMMs whose sockets are in this directory, however they came to be: one whose owner died between its start
 * and its record is found by its arguments only. Where there is no /proc, none is found.
 */
export async function endVmmsIn(socketDir: string): Promise<void> {
  for (const pid of processesNaming(socketDir)) {
    const identity = identityOf(pid);
    if (identity !== null) await endVmm(identity);
  }
}

function processesNaming(socketDir: string): number[] {
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  const marker = `path=${socketDir.replaceAll(",", ",,")}/`;
  return names
    .filter((name) => /^\d+$/.test(name) && argumentsOf(name).some((part) => part.includes(marker)))
    .map(Number);
}

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    // It ended meanwhile, or belongs to somebody else.
    return [];
  }
}
