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
  rmSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { parseJsonLines } from "../../base/json-lines-text.ts";

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

  /** The whole record is with the kernel when this returns; what a full disk took of it is told apart later, as after a crash. */
  append(record: object): void {
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    if (this.#fd !== null && this.#bytes + line.byteLength > this.#rotateBytes) {
      this[Symbol.dispose]();
      renameSync(this.path, `${this.path}.1`);
    }
    this.#fd ??= this.#open();
    try {
      writeWhole(this.#fd, line);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
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
    return parseJsonLines(text).records;
  }

  /** Replaces all records by those `keep` returns of them. Nothing is appended meanwhile: nothing is awaited. */
  rewrite(
    keep: (records: Record<string, unknown>[]) => Record<string, unknown>[],
  ): Record<string, unknown>[] {
    const kept = keep(parseJsonLines(existsSync(this.path) ? readFileSync(this.path, "utf8") : "").records);
    const text = kept.map((record) => `${JSON.stringify(record)}\n`).join("");
    this[Symbol.dispose]();
    const temporaryPath = `${this.path}.tmp-${crypto.randomUUID()}`;
    try {
      writeFile(temporaryPath, Buffer.from(text));
      renameSync(temporaryPath, this.path);
    } catch (error) {
      rmSync(temporaryPath, { force: true });
      throw error;
    }
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

function writeFile(path: string, bytes: Uint8Array): void {
  const fd = openSync(path, "wx", 0o600);
  try {
    writeWhole(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** A disk that becomes full takes a part, and says so only when asked for the rest. */
function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let count = 0; count < bytes.byteLength; ) count += writeSync(fd, bytes, count);
}
