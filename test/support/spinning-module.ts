import { readFileSync } from "node:fs";

/** A module that the guest loads at boot and can do without */
export const MODULE_NAME = "virtio_net";

const INIT = "init_module";
/** `endbr64` and the call to the tracer, which the kernel rewrites when it loads the module */
const PROLOGUE_BYTES = 9;
/** `cli`, then a jump to itself */
const SPIN = [0xfa, 0xeb, 0xfe];
const SIGNATURE_MARK = "~Module signature appended~\n";
const SYMBOL_TABLE = 2;
const SECTION_BYTES = 64;
const SYMBOL_BYTES = 24;
const CPIO_HEADER_BYTES = 110;

/**
 * A kernel module that never returns from its initialisation and takes no interrupt: the guest's only CPU is lost.
 * It is made of one the guest's own kernel takes, found in the image's initramfs.
 */
export function spinningModule(initramfsPath: string): Uint8Array {
  const module = Buffer.from(fileInArchive(readFileSync(initramfsPath), `modules/${MODULE_NAME}.ko`));
  module.set(SPIN, initOffset(module) + PROLOGUE_BYTES);
  // What was signed is no more; a module without a signature is loaded all the same.
  const mark = module.lastIndexOf(SIGNATURE_MARK);
  if (mark >= 0) module[mark] = 0;
  return module;
}

/** Python that takes the original out and puts the spinning one in its place. */
export function loadModule(path: string): string {
  const [deleteModule, finitModule] = [176, 313];
  return `python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(${deleteModule}, b"${MODULE_NAME}", os.O_NONBLOCK) != 0:
    raise SystemExit("delete_module: " + os.strerror(ctypes.get_errno()))
libc.syscall(${finitModule}, os.open("${path}", os.O_RDONLY), b"", 0)
raise SystemExit("finit_module: " + os.strerror(ctypes.get_errno()))
'`;
}

/** Where in the ELF file the code of `init_module` starts */
function initOffset(elf: Buffer): number {
  const sectionsAt = Number(elf.readBigUInt64LE(0x28));
  const sectionCount = elf.readUInt16LE(0x3c);
  const section = (index: number) => {
    const at = sectionsAt + index * SECTION_BYTES;
    return {
      type: elf.readUInt32LE(at + 4),
      offset: Number(elf.readBigUInt64LE(at + 24)),
      bytes: Number(elf.readBigUInt64LE(at + 32)),
      link: elf.readUInt32LE(at + 40),
    };
  };
  const sections = Array.from({ length: sectionCount }, (_, index) => section(index));
  const symbols = sections.find(({ type }) => type === SYMBOL_TABLE)!;
  const names = sections[symbols.link]!;
  for (let at = symbols.offset; at < symbols.offset + symbols.bytes; at += SYMBOL_BYTES) {
    const nameAt = names.offset + elf.readUInt32LE(at);
    const name = elf.toString("latin1", nameAt, elf.indexOf(0, nameAt));
    if (name === INIT)
      return sections[elf.readUInt16LE(at + 6)]!.offset + Number(elf.readBigUInt64LE(at + 8));
  }
  throw new Error(`the module has no ${INIT}`);
}

/** One file of a cpio archive (`newc`: a header of 110 hex digits, the name, the content, each padded to 4 bytes). */
function fileInArchive(archive: Buffer, wanted: string): Buffer {
  const padded = (bytes: number) => (bytes + 3) & ~3;
  const member = (at: number, index: number) =>
    Number.parseInt(archive.toString("latin1", at + 6 + index * 8, at + 14 + index * 8), 16);
  for (let at = 0; at + CPIO_HEADER_BYTES < archive.byteLength; ) {
    const [fileBytes, nameBytes] = [member(at, 6), member(at, 11)];
    const name = archive.toString("latin1", at + CPIO_HEADER_BYTES, at + CPIO_HEADER_BYTES + nameBytes - 1);
    const contentAt = padded(at + CPIO_HEADER_BYTES + nameBytes);
    if (name.replace(/^\.\//, "") === wanted) return archive.subarray(contentAt, contentAt + fileBytes);
    at = contentAt + padded(fileBytes);
  }
  throw new Error(`the archive has no ${wanted}`);
}
