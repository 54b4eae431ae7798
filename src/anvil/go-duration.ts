const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy;

/** A duration as Go's time.ParseDuration reads it ("1h30m", "0", "-5s"), in `ms`; null when it is none. */
export function parseGoDuration(text: string): number | null {
  const unsigned = text.replace(/^[+-]/, "");
  if (unsigned === "0") return 0;
  let totalMs = 0;
  let end = 0;
  for (const match of unsigned.matchAll(PART)) {
    totalMs += Number(match[1]) * UNIT_MS[match[2]!]!;
    end = match.index + match[0].length;
  }
  if (end === 0 || end !== unsigned.length) return null;
  return text.startsWith("-") ? -totalMs : totalMs;
}
