import { randomBytes } from "node:crypto";

const PREFIX = "ses_";
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const RANDOM_BYTES = 16;
const BITS_PER_CHARACTER = 5;
const SHORT_CHARACTERS = PREFIX.length + 6;

/** An id nobody can guess: whoever holds it may use the session. 128 random bits in base32 behind "ses_". */
export function newSessionId(): string {
  let id = PREFIX;
  let buffer = 0;
  let bits = 0;
  for (const byte of randomBytes(RANDOM_BYTES)) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= BITS_PER_CHARACTER) {
      bits -= BITS_PER_CHARACTER;
      id += ALPHABET[(buffer >> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  return bits > 0 ? id + ALPHABET[(buffer << (BITS_PER_CHARACTER - bits)) & 31] : id;
}

/** The start of an id, for logs: enough to tell sessions apart, too little to use one. */
export function shortSessionId(id: string): string {
  return id.slice(0, SHORT_CHARACTERS);
}
