import { readFileSync } from "node:fs";

/** USER_HZ, which Linux fixes for everything it tells to programs */
const TICKS_PER_S = 100;

/** Processor time a VMM took, in `ms`, and memory of its own, in `bytes`; zeros where there is no /proc, or no process. */
export function vmmUsage(pid: number): { cpuMs: number; memoryBytes: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return { cpuMs: cpuMsIn(stat), memoryBytes: anonymousBytesIn(status) };
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? ""))
      return { cpuMs: 0, memoryBytes: 0 };
    throw error;
  }
}

/** utime and stime, fields 14 and 15 of proc(5); the command name before them may hold spaces. */
export function cpuMsIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_S;
}

export function anonymousBytesIn(status: string): number {
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
