import { readFileSync } from "node:fs";
import { loadNative } from "../vsock/load-native.ts";

const MHZ_LINE = /^cpu MHz\s*:\s*([0-9.]+)/m;

/**
 * The host's time-stamp counter rate in kHz, or 0 when unknown. An emulated guest counts the host's ticks but cannot
 * calibrate them. Measured by the addon; /proc/cpuinfo's present frequency is the next best.
 */
export function hostTscKhz(): number {
  return loadNative()?.addon.tscKhz() || cpuinfoKhz();
}

function cpuinfoKhz(): number {
  try {
    const match = MHZ_LINE.exec(readFileSync("/proc/cpuinfo", "latin1"));
    return match ? Math.round(Number(match[1]) * 1000) : 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
