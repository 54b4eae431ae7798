/** Says why bytes are no memory diff; completes "memory.bin …". */
export class DiffFormatError extends Error {}

/** What a memory diff says of itself. Format: docs/wire/snapshot.md. */
export interface DiffIndex {
  pageBytes: number;
  /** Of the whole memory that the parent and the result have */
  memoryBytes: number;
  /** Hex, of the parent's memory.bin */
  parentSha256: string;
  /** Numbers of the pages that follow, ascending */
  pages: Uint32Array;
}

export const DIFF_HEADER_BYTES = 64;
const MAGIC = "IGNPAGES";
const VERSION = 1;
const INDEX_ENTRY_BYTES = 4;
const MIN_PAGE_BYTES = 4096;
const MAX_PAGE_BYTES = 65_536;
/** 16 TiB: what 32-bit numbers of the smallest pages reach */
const MAX_MEMORY_BYTES = 2 ** 32 * MIN_PAGE_BYTES;

/** Of the header, the index and the zeros that fill up the last page of both. */
export function indexBytes(pageCount: number, pageBytes: number): number {
  return Math.ceil((DIFF_HEADER_BYTES + pageCount * INDEX_ENTRY_BYTES) / pageBytes) * pageBytes;
}

/** Of the whole file. */
export function diffBytes(pageCount: number, pageBytes: number): number {
  return indexBytes(pageCount, pageBytes) + pageCount * pageBytes;
}

export function encodeDiffIndex({ pageBytes, memoryBytes, parentSha256, pages }: DiffIndex): Uint8Array {
  const bytes = new Uint8Array(indexBytes(pages.length, pageBytes));
  const view = new DataView(bytes.buffer);
  bytes.set(Buffer.from(MAGIC, "latin1"));
  view.setUint32(8, VERSION, true);
  view.setUint32(12, pageBytes, true);
  view.setBigUint64(16, BigInt(memoryBytes), true);
  view.setBigUint64(24, BigInt(pages.length), true);
  bytes.set(Buffer.from(parentSha256, "hex"), 32);
  pages.forEach((page, at) => {
    view.setUint32(DIFF_HEADER_BYTES + at * INDEX_ENTRY_BYTES, page, true);
  });
  return bytes;
}

/** How large the index of a file is whose first 64 bytes these are. Throws `DiffFormatError` when they begin no diff. */
export function indexBytesOf(header: Uint8Array, fileBytes: number): number {
  const { pageBytes, pageCount } = decodeHeader(header, fileBytes);
  return indexBytes(pageCount, pageBytes);
}

/** `index` is as much of a file of `fileBytes` as `indexBytesOf` says. Throws `DiffFormatError`. */
export function decodeDiffIndex(index: Uint8Array, fileBytes: number): DiffIndex {
  const { pageBytes, memoryBytes, pageCount } = decodeHeader(index, fileBytes);
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  const pages = new Uint32Array(pageCount);
  const limit = memoryBytes / pageBytes;
  let previous = -1;
  for (let at = 0; at < pageCount; at++) {
    const page = view.getUint32(DIFF_HEADER_BYTES + at * INDEX_ENTRY_BYTES, true);
    if (page <= previous) throw new DiffFormatError("has pages out of order");
    if (page >= limit) throw new DiffFormatError("has pages beyond its memory");
    pages[at] = page;
    previous = page;
  }
  const rest = index.subarray(DIFF_HEADER_BYTES + pageCount * INDEX_ENTRY_BYTES);
  if (rest.some((byte) => byte !== 0))
    throw new DiffFormatError("has something between its index and its pages");
  return { pageBytes, memoryBytes, pages, parentSha256: Buffer.from(index.subarray(32, 64)).toString("hex") };
}

function decodeHeader(
  header: Uint8Array,
  fileBytes: number,
): { pageBytes: number; memoryBytes: number; pageCount: number } {
  if (header.byteLength < DIFF_HEADER_BYTES) throw new DiffFormatError("is too short for a diff");
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  if (Buffer.from(header.subarray(0, 8)).toString("latin1") !== MAGIC)
    throw new DiffFormatError("does not begin as a diff");
  const version = view.getUint32(8, true);
  if (version !== VERSION) throw new DiffFormatError(`has version ${version} of the format, not ${VERSION}`);
  const pageBytes = view.getUint32(12, true);
  if (!isPowerOfTwo(pageBytes) || pageBytes < MIN_PAGE_BYTES || pageBytes > MAX_PAGE_BYTES)
    throw new DiffFormatError(`has pages of ${pageBytes} bytes`);
  const memoryBytes = Number(view.getBigUint64(16, true));
  if (memoryBytes % pageBytes !== 0 || memoryBytes > MAX_MEMORY_BYTES)
    throw new DiffFormatError(`is of ${memoryBytes} bytes of memory`);
  const pageCount = Number(view.getBigUint64(24, true));
  if (pageCount > memoryBytes / pageBytes || diffBytes(pageCount, pageBytes) !== fileBytes)
    throw new DiffFormatError(`has ${fileBytes} bytes, which is not what ${pageCount} pages take`);
  return { pageBytes, memoryBytes, pageCount };
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0;
}
