import { randomBytes } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const BITS_PER_CHARACTER = 5;
/** Nobody guesses 128 bits */
const SECRET_BYTES = 16;

/** Random bits in base32 behind a prefix such as "ses_": as text, 26 characters for the 16 bytes of a secret. */
export function randomId(prefix: string, sizeBytes = SECRET_BYTES): string {
  let id = prefix;
  let buffer = 0;
  let bits = 0;
  for (const byte of randomBytes(sizeBytes)) {
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
