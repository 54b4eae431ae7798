import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { STORE_PATH } from "./real-vm.ts";

const BASE = "tools-base";

/** A store of a test's own, to build in or to damage; empty at first. */
export class TestStore {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
    mkdirSync(path, { recursive: true });
  }

  /** Path of a file of a base, such as "memory.bin". */
  file(name: string, base = BASE): string {
    return join(this.path, "snapshots", base, name);
  }

  /** Puts a copy of the base all tests share into this store; memory.bin stays sparse. */
  copySharedBase(): void {
    const directory = dirname(this.file("memory.bin"));
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(dirname(directory), { recursive: true });
    const source = join(STORE_PATH, "snapshots", BASE);
    const copy = ["cp", "--recursive", "--sparse=always", "--reflink=auto", source, directory];
    const { exitCode, stderr } = Bun.spawnSync(copy);
    if (exitCode !== 0) throw new Error(`the base could not be copied: ${stderr}`);
  }
}

/** Flips one bit of the byte at `offset`; doing it again mends the file. */
export function flipBit(path: string, offset: number): void {
  const file = openSync(path, "r+");
  try {
    const byte = new Uint8Array(1);
    if (readSync(file, byte, 0, 1, offset) !== 1) throw new Error(`${path} has no byte ${offset}`);
    byte[0]! ^= 1;
    writeSync(file, byte, 0, 1, offset);
  } finally {
    closeSync(file);
  }
}

/** Cuts the last bytes off a file; the returned function puts them back. */
export function cutShort(path: string, bytes: number): () => void {
  const start = statSync(path).size - bytes;
  const tail = Buffer.alloc(bytes);
  const file = openSync(path, "r");
  try {
    if (readSync(file, tail, 0, bytes, start) !== bytes) throw new Error(`${path} ends early`);
  } finally {
    closeSync(file);
  }
  truncateSync(path, start);
  return () => appendFileSync(path, tail);
}
