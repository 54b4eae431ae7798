const NANOS_PER_MS = 1_000_000n;

let last = 0n;

/** `<prefix><nanoseconds since 1970>`, greater than every one before it in this process. */
export function nanoId(prefix: string): string {
  const now = BigInt(Date.now()) * NANOS_PER_MS;
  last = now > last ? now : last + 1n;
  return `${prefix}${last}`;
}
