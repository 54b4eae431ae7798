/** A file in a process' memory. */
export interface MappedFile {
  inode: bigint;
  mappings: Mapping[];
}

/** One stretch of memory that shows a file, in `bytes`. */
export interface Mapping {
  start: number;
  end: number;
  /** Where in the file it begins */
  fileOffset: number;
}

/** Bytes in a process' memory and where in the mapped file they belong. */
export interface Extent {
  address: number;
  fileOffset: number;
  bytes: number;
}

const PAGEMAP_ENTRY_BYTES = 8;
const MAPS_LINE = /^([0-9a-f]+)-([0-9a-f]+) ...p ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ (\d+) +(.*)$/;
/** In the upper half of an entry: bits 63, 62 and 61 */
const PRESENT = 1 << 31;
const SWAPPED = 1 << 30;
const OF_FILE = 1 << 29;

/** Where a process has mapped the file of this name privately, from its /proc/<pid>/maps; null when nowhere. */
export function privatelyMapped(mapsText: string, fileName: string): MappedFile | null {
  let found: MappedFile | null = null;
  for (const line of mapsText.split("\n")) {
    const [, start, end, fileOffset, inode, path] = MAPS_LINE.exec(line) ?? [];
    const name = path
      ?.replace(/ \(deleted\)$/, "")
      .split("/")
      .at(-1);
    if (name !== fileName) continue;
    found ??= { inode: BigInt(inode!), mappings: [] };
    if (BigInt(inode!) !== found.inode) continue;
    found.mappings.push({ start: hex(start), end: hex(end), fileOffset: hex(fileOffset) });
  }
  return found;
}

/** Whether mappings show each of the first `bytes` bytes once and nothing else; a VMM that was taken over may map anything. */
export function coversExactly(mappings: readonly Mapping[], bytes: number): boolean {
  let at = 0;
  for (const { start, end, fileOffset } of mappings.toSorted((a, b) => a.fileOffset - b.fileOffset)) {
    if (fileOffset !== at) return false;
    at += end - start;
  }
  return at === bytes;
}

function hex(digits: string | undefined): number {
  return Number(`0x${digits}`);
}

/**
 * The pages of a private mapping that were written since it was made, joined where they touch: in memory (bit 63) or
 * swapped out (62), and no longer the file's (61). `entries` is what /proc/<pid>/pagemap holds for the mapping.
 */
export function privateExtents(entries: Uint8Array, mapping: Mapping, pageBytes: number): Extent[] {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const extents: Extent[] = [];
  let open: Extent | null = null;
  for (let at = 0, offset = 0; at < entries.byteLength; at += PAGEMAP_ENTRY_BYTES, offset += pageBytes) {
    const flags = view.getUint32(at + 4, true);
    if ((flags & (PRESENT | SWAPPED)) === 0 || (flags & OF_FILE) !== 0) {
      open = null;
    } else if (open) {
      open.bytes += pageBytes;
    } else {
      open = { address: mapping.start + offset, fileOffset: mapping.fileOffset + offset, bytes: pageBytes };
      extents.push(open);
    }
  }
  return extents;
}

/** Size of a page of this machine, in `bytes`, from /proc/self/auxv: pairs of 64-bit words, key 6. */
export function pageBytesOf(auxiliaryVector: Uint8Array): number {
  const words = new DataView(auxiliaryVector.buffer, auxiliaryVector.byteOffset, auxiliaryVector.byteLength);
  for (let at = 0; at + 16 <= words.byteLength; at += 16) {
    if (words.getBigUint64(at, true) === 6n) return Number(words.getBigUint64(at + 8, true));
  }
  throw new RangeError("the auxiliary vector does not tell the page size");
}
