import { randomBytes } from "node:crypto";

const SESSION_PREFIX = "ses_";
const RUN_PREFIX = "run_";
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const SESSION_BYTES = 16;
/** A run's id only tells it from others of its session. */
const RUN_BYTES = 5;
const BITS_PER_CHARACTER = 5;
const SHORT_CHARACTERS = SESSION_PREFIX.length + 6;

/** An id nobody can guess: whoever holds it may use the session. 128 random bits in base32 behind "ses_". */
export function newSessionId(): string {
  return SESSION_PREFIX + randomText(SESSION_BYTES);
}

export function newRunId(): string {
  return RUN_PREFIX + randomText(RUN_BYTES);
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

/** The start of an id, for logs: enough to tell sessions apart, too little to use one. */
export function shortSessionId(id: string): string {
  return id.slice(0, SHORT_CHARACTERS);
}
