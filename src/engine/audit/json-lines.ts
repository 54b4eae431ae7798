import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";

const NEW_LINE = 0x0a;
/** A link in its place must not make us write elsewhere. */
const APPEND = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;

export interface JsonLinesOptions {
  /** The file becomes `<path>.1`, and that one goes, when it is larger, in `bytes`; never without it */
  rotateBytes?: number;
}

/**
 * An append-only file of JSON objects, one a line. A line that a crash cut off is left alone, told apart by the next
 * line's beginning, and skipped by readers.
 */
export class JsonLines implements Disposable {
  readonly path: string;
  readonly #rotateBytes: number;
  #fd: number | null = null;
  #bytes = 0;

  constructor(path: string, options: JsonLinesOptions = {}) {
    this.path = path;
    this.#rotateBytes = options.rotateBytes ?? Number.POSITIVE_INFINITY;
  }

  /** The record is with the kernel when this returns. */
  append(record: object): void {
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    if (this.#fd !== null && this.#bytes + line.byteLength > this.#rotateBytes) {
      this[Symbol.dispose]();
      renameSync(this.path, `${this.path}.1`);
    }
    this.#fd ??= this.#open();
    writeSync(this.#fd, line);
    this.#bytes += line.byteLength;
  }

  /** All whole records, the oldest first. */
  async read(): Promise<Record<string, unknown>[]> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
    return recordsIn(text);
  }

  /** Replaces all records by those `keep` returns of them. Nothing is appended meanwhile: nothing is awaited. */
  rewrite(
    keep: (records: Record<string, unknown>[]) => Record<string, unknown>[],
  ): Record<string, unknown>[] {
    const kept = keep(recordsIn(existsSync(this.path) ? readFileSync(this.path, "utf8") : ""));
    const text = kept.map((record) => `${JSON.stringify(record)}\n`).join("");
    this[Symbol.dispose]();
    const temporaryPath = `${this.path}.tmp-${crypto.randomUUID()}`;
    const fd = openSync(temporaryPath, "wx", 0o600);
    try {
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporaryPath, this.path);
    return kept;
  }

  [Symbol.dispose](): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #open(): number {
    const fd = openSync(this.path, APPEND, 0o600);
    this.#bytes = fstatSync(fd).size;
    const last = new Uint8Array(1);
    if (this.#bytes > 0 && readSync(fd, last, 0, 1, this.#bytes - 1) === 1 && last[0] !== NEW_LINE)
      this.#bytes += writeSync(fd, "\n");
    return fd;
  }
}

function recordsIn(text: string): Record<string, unknown>[] {
  return text.split("\n").flatMap(parseRecord);
}

function parseRecord(line: string): Record<string, unknown>[] {
  if (line === "") return [];
  try {
    const record: unknown = JSON.parse(line);
    return typeof record === "object" && record !== null && !Array.isArray(record)
      ? [record as Record<string, unknown>]
      : [];
  } catch {
    // Cut off by a crash; what is behind it is whole.
    return [];
  }
}
