import { randomInt } from "node:crypto";

const NANOS_PER_MS = 1_000_000;

let last = 0n;

/**
 * `<prefix><nanoseconds since 1970>`, greater than every one before it in this process. What a clock's milliseconds leave
 * open is random, so that a clock set back leads to no id an earlier process gave out.
 */
export function nanoId(prefix: string): string {
  const now = BigInt(Date.now()) * BigInt(NANOS_PER_MS) + BigInt(randomInt(NANOS_PER_MS));
  last = now > last ? now : last + 1n;
  return `${prefix}${last}`;
}
