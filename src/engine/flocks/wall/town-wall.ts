import type { EngineError } from "../../engine-error.ts";
import { jsonError } from "../../engine-error.ts";
import { isWanted, type WallFilter } from "./wall-filter.ts";
import { WallLog, type WallLogOptions } from "./wall-log.ts";
import { encodeMessage, type WallMessage } from "./wall-message.ts";
import { WallReader } from "./wall-reader.ts";

/** Of one answer, in `bytes`; of more, the newest */
const HISTORY_BYTES = 32 * 1_048_576;
const MAX_READERS = 256;

/** The wall of one flock: what its members and its operators tell each other. */
export class TownWall {
  readonly #log: WallLog;
  readonly #readers: Set<WallReader>;
  #closing: Promise<void> | null = null;

  private constructor(log: WallLog, readers: Set<WallReader>) {
    this.#log = log;
    this.#readers = readers;
  }

  static async open(dir: string, options: Omit<WallLogOptions, "onWritten">): Promise<TownWall> {
    const readers = new Set<WallReader>();
    const onWritten = (messages: readonly WallMessage[]) => {
      for (const reader of readers) reader.offer(messages);
    };
    return new TownWall(await WallLog.open(dir, { ...options, onWritten }), readers);
  }

  /** On disk when it resolves, with its number and time. No reader can hold it up. */
  async post(agentId: string, body: string): Promise<WallMessage> {
    if (this.#closing) throw wallClosed();
    return await this.#log.append(agentId, body);
  }

  /** Those that are kept and wanted, the oldest first; of more than 32 MiB the newest. */
  async history(filter: WallFilter, signal: AbortSignal): Promise<WallMessage[]> {
    const found: { message: WallMessage; bytes: number }[] = [];
    let bytes = 0;
    const { end } = this.#log;
    for (let position = this.#log.start; position < end; ) {
      // What was removed meanwhile is no part of the history any more.
      const { messages, next } = this.#log.read(Math.max(position, this.#log.start))!;
      let first = 0;
      for (const message of messages.filter((message) => isWanted(message, filter))) {
        const size = encodeMessage(message).byteLength;
        found.push({ message, bytes: size });
        bytes += size;
        while (bytes > HISTORY_BYTES) bytes -= found[first++]!.bytes;
      }
      found.splice(0, first);
      position = next;
      await new Promise(setImmediate);
      signal.throwIfAborted();
    }
    return found.map(({ message }) => message);
  }

  /** How many read it now. */
  get readers(): number {
    return this.#readers.size;
  }

  /** All that is kept and then whatever comes, each message once. Throws 503 when too many read already. */
  read(): WallReader {
    if (this.#closing) throw wallClosed();
    if (this.#readers.size >= MAX_READERS)
      throw jsonError(503, "too_many_readers", `the wall has ${MAX_READERS} readers already`);
    return new WallReader(this.#log, this.#readers);
  }

  /** Readers get what was posted before and then the end; a post that waits is still written. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#log.settle();
    for (const reader of [...this.#readers]) reader.finish();
    await this.#log.close();
  }
}

function wallClosed(): EngineError {
  return jsonError(404, "flock_not_found", "flock not found");
}
