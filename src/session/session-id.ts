import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const SESSION_BYTES = 16;
/** A run's id only tells it from others of its session. */
const RUN_BYTES = 5;
const BITS_PER_CHARACTER = 5;

/** An id nobody can guess: whoever holds it may use the session. 128 random bits in base32 behind "ses_". */
export function newSessionId(): string {
  return `ses_${randomText(SESSION_BYTES)}`;
}

export function newRunId(): string {
  return `run_${randomText(RUN_BYTES)}`;
}

function randomText(sizeBytes: number): string {
  let text = "";
  let buffer = 0;
  let bits = 0;
  for (const byte of randomBytes(sizeBytes)) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= BITS_PER_CHARACTER) {
      bits -= BITS_PER_CHARACTER;
      text += ALPHABET[(buffer >> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  return bits > 0 ? text + ALPHABET[(buffer << (BITS_PER_CHARACTER - bits)) & 31] : text;
}
