import { accessSync, constants } from "node:fs";
import type { Acceleration } from "./machine-spec.ts";

/** Time an accelerated kernel has to reach the agent's first line; a real one needs under a second. */
const FIRST_SIGN_MS = { kvm: 8000, hvf: 8000, tcg: 120_000 };
/** Time from there to TOOLS_READY */
const READY_MS = { kvm: 60_000, hvf: 60_000, tcg: 240_000 };

export interface BootDeadlines {
  firstSignMs: number;
  readyMs: number;
}

export function bootDeadlines(acceleration: Acceleration): BootDeadlines {
  return { firstSignMs: FIRST_SIGN_MS[acceleration], readyMs: READY_MS[acceleration] };
}

/**
 * What to try, best first. A device file that opens does not prove that guests run on it, so only a boot decides;
 * one that does not open proves that they do not. HVF is untested.
 */
export function accelerationCandidates(forced: Acceleration | null): Acceleration[] {
  if (forced !== null) return [forced];
  if (process.platform === "darwin") return ["hvf", "tcg"];
  return kvmOpens() ? ["kvm", "tcg"] : ["tcg"];
}

function kvmOpens(): boolean {
  try {
    accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
    return true;
  } catch {
    // Whatever the reason, this user cannot use it.
    return false;
  }
}

/**
 * The first candidate's result, in their order; null when all fail. `onFailure` is told each failure before the next is
 * tried, and ends it all by throwing.
 */
export async function firstThatWorks<Result>(
  candidates: Acceleration[],
  attempt: (candidate: Acceleration) => Promise<Result>,
  onFailure: (candidate: Acceleration, error: unknown) => void,
): Promise<Result | null> {
  for (const candidate of candidates) {
    try {
      return await attempt(candidate);
    } catch (error) {
      onFailure(candidate, error);
    }
  }
  return null;
}
