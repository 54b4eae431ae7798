import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { parseJsonLine } from "../../base/json-lines-text.ts";
import { linesFromEnd } from "./lines-from-end.ts";
import { rewriteLines } from "./rewrite-lines.ts";

const NEW_LINE = 0x0a;
/** A link in its place must not make us write elsewhere. */
const APPEND = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;

export type JsonRecord = Record<string, unknown>;

export interface JsonLinesOptions {
  /** The file becomes `<path>.1`, and that one goes, when it is larger, in `bytes`; never without it */
  rotateBytes?: number;
}

/**
 * An append-only file of JSON objects, one a line. A line that a crash cut off is left alone, told apart by the next
 * line's beginning, and skipped by readers. However long it is, no more than a block of it is in memory, and nobody waits.
 */
export class JsonLines implements Disposable {
  readonly path: string;
  readonly #rotateBytes: number;
  #fd: number | null = null;
  #bytes = 0;
  #rewriting: Promise<void> = Promise.resolve();

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

  /** The newest `limit` records that are wanted, the oldest first. */
  async newest(limit: number, isWanted: (record: JsonRecord) => boolean = () => true): Promise<JsonRecord[]> {
    const found: JsonRecord[] = [];
    for await (const records of this.newestFirst()) {
      for (const record of records) {
        if (found.length === limit) break;
        if (isWanted(record)) found.push(record);
      }
      if (found.length === limit) break;
    }
    return found.reverse();
  }

  /** All whole records, group by group, and after them those of the file that was set aside. */
  async *newestFirst(): AsyncGenerator<JsonRecord[]> {
    let before: number | null = null;
    for (const path of [this.path, `${this.path}.1`]) {
      if (!existsSync(path)) continue;
      await using file = await open(path, "r");
      const { ino, size } = await file.stat();
      // It may have been set aside just now, and was told already.
      if (ino === before) continue;
      before = ino;
      for await (const lines of linesFromEnd(file, size))
        yield lines.map(({ text }) => parseJsonLine(text)).filter((record) => record !== null);
    }
  }

  /**
   * Removes all records but those that `isKept`, which is asked of the newest first, and those that are appended meanwhile.
   * Rejects with nothing changed.
   */
  async rewrite(isKept: (record: JsonRecord) => boolean): Promise<void> {
    const isLineKept = (text: string) => {
      const record = parseJsonLine(text);
      return record !== null && isKept(record);
    };
    const rewritten = this.#rewriting.then(async () => {
      if (!existsSync(this.path)) return;
      // Whoever appends next opens the new file.
      await rewriteLines(this.path, isLineKept, () => this[Symbol.dispose]());
    });
    this.#rewriting = rewritten.catch(() => undefined);
    await rewritten;
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

/** A disk that becomes full takes a part, and says so only when asked for the rest. */
function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let count = 0; count < bytes.byteLength; ) count += writeSync(fd, bytes, count);
}
