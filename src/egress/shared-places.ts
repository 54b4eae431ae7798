import { readFileSync } from "node:fs";
import { Places } from "../base/places.ts";

/** What all gates of this process share, so that one guest's connections cannot take what every other part needs. */
export interface SharedPlaces {
  connections: Places;
  lookups: Places;
}

/** Each is a socket or more, for as long as a server does not answer */
const LOOKUPS = 256;
/** Where the system does not say it as Linux does */
const DESCRIPTORS_ELSEWHERE = 4096;

let ofThisProcess: SharedPlaces | null = null;

export function sharedPlaces(): SharedPlaces {
  ofThisProcess ??= { connections: new Places(mostConnections()), lookups: new Places(LOOKUPS) };
  return ofThisProcess;
}

/** Half of the descriptors this process may have: the other half is for VMs, files and clients. */
export function mostConnections(): number {
  return Math.floor(descriptorLimit() / 2);
}

function descriptorLimit(): number {
  if (process.platform !== "linux") return DESCRIPTORS_ELSEWHERE;
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
  return soft === undefined ? DESCRIPTORS_ELSEWHERE : Number(soft);
}
