import { rm } from "node:fs/promises";
import { syncDirectory } from "../../../base/atomic-file.ts";
import type { Logger } from "../../../base/logger.ts";
import { jsonError } from "../../engine-error.ts";
import { readLines } from "./read-lines.ts";
import { type OpenWallFile, openWallFile, type WallFile } from "./wall-file.ts";
import { activePath, findWall, rotate, type WallPart } from "./wall-files.ts";
import { decodeMessage, encodeMessage, type WallMessage, wallTime } from "./wall-message.ts";

/** Written at once, at most */
const BATCH_BYTES = 1_048_576;
/** Waiting to be written, at most */
const BACKLOG_BYTES = 67_108_864;
const READ_BYTES = 262_144;
const NO_SPACE = ["ENOSPC", "EDQUOT", "EFBIG"];

export interface WallLogOptions {
  /** Of one file, in `bytes`. Only a single message beyond it makes a larger one */
  maxBytes: number;
  /** How many older files are kept */
  keep: number;
  log: Logger;
  /** Called with messages as soon as they are on disk, in their order */
  onWritten: (messages: readonly WallMessage[]) => void;
  openFile?: OpenWallFile;
  now?: () => number;
}

interface Waiting {
  agentId: string;
  body: string;
  written: PromiseWithResolvers<WallMessage>;
}

/**
 * The messages of one wall on disk: an append-only file that is set aside when it is full. What was acknowledged is
 * on disk; positions count `bytes` over all files since the wall was opened.
 */
export class WallLog {
  readonly #dir: string;
  readonly #options: WallLogOptions;
  /** The oldest first; the last one is written to */
  readonly #parts: WallPart[];
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #file: WallFile;
  #lastSeq: number;
  /** A write failed, and what it left may still be behind the end */
  #isTorn = false;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();

  private constructor(dir: string, options: WallLogOptions, parts: WallPart[], file: WallFile, seq: number) {
    this.#dir = dir;
    this.#options = options;
    this.#parts = parts;
    this.#file = file;
    this.#lastSeq = seq;
  }

  /** Cuts off what a crash left of a message that nobody was told of. */
  static async open(dir: string, options: WallLogOptions): Promise<WallLog> {
    const { parts, lastSeq, tornBytes, damagedLines } = findWall(dir);
    const path = activePath(dir);
    if (parts.length === 0) parts.push({ path, start: 0, bytes: 0 });
    const newest = parts.at(-1)!;
    const file = await (options.openFile ?? openWallFile)(newest.path);
    if (tornBytes > 0) {
      await file.cut(newest.bytes);
      options.log.warn({ path, bytes: tornBytes }, "the last message of a wall was torn; it was cut off");
    }
    if (damagedLines > 0)
      options.log.error({ path, damagedLines }, "lines of a wall are damaged; they are left out");
    await syncDirectory(dir);
    return new WallLog(dir, options, parts, file, lastSeq);
  }

  /** Where the oldest kept message begins. */
  get start(): number {
    return this.#parts[0]!.start;
  }

  /** Behind the newest message that was acknowledged. */
  get end(): number {
    const newest = this.#parts.at(-1)!;
    return newest.start + newest.bytes;
  }

  /** On disk when it resolves. Rejects with 507, 503 or 500, and then it is not in the log. */
  append(agentId: string, body: string): Promise<WallMessage> {
    if (this.#waitingBytes > BACKLOG_BYTES)
      return Promise.reject(jsonError(503, "wall_behind", "too many messages wait to be written; try again"));
    const written = Promise.withResolvers<WallMessage>();
    this.#waiting.push({ agentId, body, written });
    this.#waitingBytes += body.length;
    if (!this.#isWriting) this.#writing = this.#writeAll();
    return written.promise;
  }

  /** Some messages from a position on, and the position behind them; null when they are not kept any more. */
  read(position: number): { messages: WallMessage[]; next: number } | null {
    if (position < this.start) return null;
    const part = this.#parts.findLast(({ start }) => start <= position)!;
    const { lines, next } = readLines(part.path, position - part.start, part.bytes, READ_BYTES);
    const messages = lines.map(({ bytes }) => decodeMessage(bytes)).filter((message) => message !== null);
    return { messages, next: part.start + (lines.length === 0 ? part.bytes : next) };
  }

  /** Resolves when nothing waits to be written. */
  async settle(): Promise<void> {
    await this.#writing;
  }

  async close(): Promise<void> {
    await this.settle();
    await this.#file.close();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const { batch, messages, bytes } = this.#nextBatch();
      try {
        await this.#write(bytes, messages.at(-1)!.seq);
      } catch (error) {
        for (const { written } of batch) written.reject(writeFailed(error));
        continue;
      }
      this.#options.onWritten(messages);
      for (const [at, { written }] of batch.entries()) written.resolve(messages[at]!);
    }
    this.#isWriting = false;
  }

  #nextBatch(): { batch: Waiting[]; messages: WallMessage[]; bytes: Buffer } {
    const timestamp = wallTime((this.#options.now ?? Date.now)());
    const batch: Waiting[] = [];
    const messages: WallMessage[] = [];
    const lines: Buffer[] = [];
    let size = 0;
    for (const waiting of this.#waiting) {
      const seq = this.#lastSeq + batch.length + 1;
      const message = { seq, timestamp, agent_id: waiting.agentId, body: waiting.body };
      const line = encodeMessage(message);
      if (batch.length > 0 && size + line.byteLength > BATCH_BYTES) break;
      size += line.byteLength;
      batch.push(waiting);
      messages.push(message);
      lines.push(line);
      this.#waitingBytes -= waiting.body.length;
    }
    this.#waiting.splice(0, batch.length);
    return { batch, messages, bytes: Buffer.concat(lines) };
  }

  async #write(bytes: Buffer, lastSeq: number): Promise<void> {
    const newest = this.#parts.at(-1)!;
    if (this.#isTorn) await this.#file.cut(newest.bytes);
    this.#isTorn = false;
    if (newest.bytes > 0 && newest.bytes + bytes.byteLength > this.#options.maxBytes) {
      await this.#writeToNewFile(bytes, lastSeq);
      return;
    }
    try {
      await this.#file.write(bytes, newest.bytes);
    } catch (error) {
      this.#isTorn = true;
      await this.#file.cut(newest.bytes).then(
        () => {
          this.#isTorn = false;
        },
        (cause) =>
          this.#options.log.error({ err: cause }, "a failed write to a wall could not be undone yet"),
      );
      throw error;
    }
    newest.bytes += bytes.byteLength;
    this.#lastSeq = lastSeq;
  }

  /** The new file appears with its first messages in it, so that the newest file always knows the last number. */
  async #writeToNewFile(bytes: Buffer, lastSeq: number): Promise<void> {
    const path = activePath(this.#dir);
    const temporaryPath = `${path}.tmp-${crypto.randomUUID()}`;
    const start = this.end;
    const file = await (this.#options.openFile ?? openWallFile)(temporaryPath);
    try {
      await file.write(bytes, 0);
      rotate(this.#dir, this.#parts, temporaryPath, this.#options.keep);
    } catch (error) {
      await file.close();
      await rm(temporaryPath, { force: true });
      throw error;
    }
    this.#parts.push({ path, start, bytes: bytes.byteLength });
    this.#lastSeq = lastSeq;
    const older = this.#file;
    this.#file = file;
    await older.close();
    await syncDirectory(this.#dir);
  }
}

function writeFailed(error: unknown) {
  const isFull = NO_SPACE.includes((error as NodeJS.ErrnoException).code ?? "");
  return isFull
    ? jsonError(507, "disk_full", "the disk is full; the message was not posted", {}, error)
    : jsonError(500, "wall_failed", "the message could not be written", {}, error);
}
