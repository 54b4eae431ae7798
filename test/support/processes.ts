import { readdirSync, readFileSync } from "node:fs";

/** One process as /proc shows it. `pid` and `startTicks` together name it for good, since pids are used again. */
export interface ProcessInfo {
  pid: number;
  parentPid: number;
  /** Command name, at most 15 characters */
  name: string;
  /** "Z" is a zombie: it has ended and holds nothing but its pid */
  state: string;
  /** Start time in clock ticks since boot */
  startTicks: number;
}

export function listProcesses(): ProcessInfo[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((info) => info !== null);
}

/** Null when there is no such process (any more). */
export function readProcess(pid: number): ProcessInfo | null {
  const stat = readIfPresent(`/proc/${pid}/stat`);
  const parts = /^\d+ \((.*)\) (\S) (\d+) (.*)$/s.exec(stat);
  if (parts === null) return null;
  const rest = parts[4]!.split(" ");
  return {
    pid,
    name: parts[1]!,
    state: parts[2]!,
    parentPid: Number(parts[3]),
    startTicks: Number(rest[17]),
  };
}

/** All living processes below `pid`, at any depth. */
export function descendantsOf(pid: number, processes = listProcesses()): ProcessInfo[] {
  const children = processes.filter((info) => info.parentPid === pid && info.state !== "Z");
  return children.flatMap((child) => [child, ...descendantsOf(child.pid, processes)]);
}

/** Whether arguments, environment or mounts of a process name the path. */
export function mentionsPath(pid: number, path: string): boolean {
  const sources = ["cmdline", "environ", "mountinfo"];
  return sources.some((source) => readIfPresent(`/proc/${pid}/${source}`).includes(path));
}

/** How many file descriptors a process has open. */
export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process ended between listing and reading, or belongs to another user: nothing of ours.
    return "";
  }
}
