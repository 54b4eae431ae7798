import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";

const AVAILABLE_LINE = /^MemAvailable:\s+(\d+) kB$/m;
/** Part of the machine's memory that clones nobody asked for leave alone */
const RESERVED_PART = 1 / 8;

/** Whether there is room for one more clone that nobody waits for yet. */
export function hasRoomForSpareClone(
  guestMemoryBytes: number,
  availableBytes = availableMemoryBytes(),
  totalBytes = totalmem(),
): boolean {
  return availableBytes >= totalBytes * RESERVED_PART + guestMemoryBytes;
}

/** What could be used without swapping, in `bytes`. */
function availableMemoryBytes(): number {
  try {
    const match = AVAILABLE_LINE.exec(readFileSync("/proc/meminfo", "latin1"));
    return match ? Number(match[1]) * 1024 : freemem();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return freemem();
    throw error;
  }
}
