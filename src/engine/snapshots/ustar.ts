/** Headers of POSIX ustar archives (IEEE Std 1003.1-2017, pax, "ustar Interchange Format"), and of nothing else. */

export const BLOCK_BYTES = 512;
/** What eleven octal digits count to */
export const MAX_ENTRY_BYTES = 8 ** 11 - 1;
const MAGIC = "ustar\u000000";
const REGULAR_FILE = "0";
const CHECKSUM = { at: 148, bytes: 8 };

/** Says why a block is no header of a regular file; completes "the archive …". */
export class UstarError extends Error {}

export interface UstarEntry {
  name: string;
  bytes: number;
}

/** How many zeros follow an entry's content. */
export function paddingOf(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** A regular file's header, with mode 0600 and owned by nobody in particular. `modified` is in seconds. */
export function encodeHeader({ name, bytes }: UstarEntry, modified: number): Uint8Array {
  if (Buffer.byteLength(name) > 100 || bytes > MAX_ENTRY_BYTES)
    throw new UstarError(`cannot hold ${name} of ${bytes} bytes`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0);
  for (const [value, at, digits] of [
    [0o600, 100, 7],
    [0, 108, 7],
    [0, 116, 7],
    [bytes, 124, 11],
    [modified, 136, 11],
    [0, 329, 7],
    [0, 337, 7],
  ] as const)
    header.write(octal(value, digits), at);
  header.write(REGULAR_FILE, 156);
  header.write(MAGIC, 257, "latin1");
  header.write(`${octal(checksumOf(header), 6)}\0 `, CHECKSUM.at);
  return header;
}

/**
 * Null for a block of zeros, which ends an archive. Throws `UstarError` for anything but a regular file of a plain name:
 * links, directories, devices, pax and GNU extensions, prefixes, sizes that are not octal.
 */
export function decodeHeader(block: Uint8Array): UstarEntry | null {
  const header = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (header.byteLength !== BLOCK_BYTES) throw new UstarError("ends in a header");
  if (header.every((byte) => byte === 0)) return null;
  if (number(header, CHECKSUM.at, CHECKSUM.bytes) !== checksumOf(header))
    throw new UstarError("has a header whose checksum is wrong");
  if (header.toString("latin1", 257, 265) !== MAGIC)
    throw new UstarError("has a header that is not of ustar");
  const name = text(header, 0, 100);
  const type = header.toString("latin1", 156, 157);
  if (type !== REGULAR_FILE) throw new UstarError(`has an entry of type ${JSON.stringify(type)}`);
  if (text(header, 157, 100) !== "") throw new UstarError("has a link in it");
  if (text(header, 345, 155) !== "") throw new UstarError("has a name with a prefix");
  return { name, bytes: number(header, 124, 12) };
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** Of all bytes, those of the checksum itself counted as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) {
    const isChecksum = at >= CHECKSUM.at && at < CHECKSUM.at + CHECKSUM.bytes;
    sum += isChecksum ? 0x20 : header[at]!;
  }
  return sum;
}

/** Up to the first NUL; what follows must be NULs too. */
function text(header: Buffer, at: number, bytes: number): string {
  const field = header.toString("latin1", at, at + bytes);
  const found = field.replace(/\0+$/, "");
  if (found.includes("\0")) throw new UstarError("has a name with something behind its end");
  return found;
}

function number(header: Buffer, at: number, bytes: number): number {
  const field = header.toString("latin1", at, at + bytes);
  const digits = /^ *([0-7]+)[\0 ]+$/.exec(field)?.[1];
  if (digits === undefined) throw new UstarError("has a number that is not octal");
  return Number.parseInt(digits, 8);
}
