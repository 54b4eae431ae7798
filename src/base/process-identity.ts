import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Names one process for ever: `<pid>-<start time>`. A pid alone is reused.
 * The start time is in clock ticks since boot (Linux, proc(5) field 22) or a hash of ps's lstart elsewhere.
 */
export type ProcessIdentity = `${number}-${string}`;

const IDENTITY = /^(\d+)-([0-9a-z]+)$/;

export function identityOf(pid: number): ProcessIdentity | null {
  const started = process.platform === "linux" ? startTicks(pid) : startHash(pid);
  return started === null ? null : `${pid}-${started}`;
}

/** False for a text that is no identity, and for a process that has ended, even when its pid lives again. */
export function isAlive(identity: string): boolean {
  const match = IDENTITY.exec(identity);
  return match !== null && identityOf(Number(match[1])) === identity;
}

export function isProcessIdentity(text: string): text is ProcessIdentity {
  return IDENTITY.test(text);
}

function startTicks(pid: number): string | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
  // The command name may hold spaces and parentheses; the fields are counted from behind its last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isZombie = fields[0] === "Z" || fields[0] === "X";
  return isZombie ? null : (fields[19] ?? null);
}

/** macOS has no /proc. Untested there. */
function startHash(pid: number): string | null {
  const { stdout, status } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
  return status === 0 && stdout.trim() !== "" ? Bun.hash(stdout.trim()).toString(36) : null;
}
