import { ByteQueue } from "./byte-queue.ts";
import { EgressError } from "./egress-error.ts";

/** A byte stream both ways. Closing `writable` ends that direction only; the other goes on. */
export interface Connection {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Ends both directions at once, where cancelling and aborting the streams does not */
  abort?(reason: Error): void;
}

/** One end of a connection, read through a buffer that a parser may look into before it takes from it. */
export class Channel {
  readonly #connection: Connection;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #queue = new ByteQueue();
  #destroyedBy: unknown = null;
  #isStopped = false;
  #pending: Promise<{ done: boolean; value?: Uint8Array | undefined }> | null = null;
  #wake: () => void = () => undefined;
  readBytes = 0;
  writtenBytes = 0;
  /** Called when bytes moved in either direction */
  onActivity: () => void = () => undefined;
  #companion: Channel | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#reader = connection.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    this.#writer = connection.writable.getWriter();
    // A failure is told by the call that meets it.
    this.#reader.closed.catch(() => undefined);
    this.#writer.closed.catch(() => undefined);
  }

  /** The one whose bytes count as activity here, and which is destroyed along with this. */
  accompany(companion: Channel): void {
    this.#companion = companion;
    companion.onActivity = this.onActivity;
    if (this.#destroyedBy !== null) companion.destroy(this.#destroyedBy);
  }

  /** What arrived and was not taken. The caller bounds it: nothing is read unless it asks. */
  get buffered(): Uint8Array {
    return this.#queue.bytes;
  }

  /** Waits for more bytes and appends them; false at the end of the stream. Rejects once destroyed. */
  async fill(): Promise<boolean> {
    const more = await this.#next();
    if (more === null) return false;
    this.#queue.add(more);
    return true;
  }

  take(count: number): Uint8Array {
    return this.#queue.take(count);
  }

  /** All that is buffered, else the next bytes; null at the end of the stream. */
  async read(): Promise<Uint8Array | null> {
    const { byteLength } = this.buffered;
    return byteLength > 0 ? this.take(byteLength) : await this.#next();
  }

  /** Resolves when the other side has room for more. */
  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.byteLength === 0) return;
    await this.#writer.write(bytes).catch((error) => this.#lost(error));
    this.writtenBytes += bytes.byteLength;
    this.onActivity();
  }

  /** Ends the direction that is written; what comes back may still be read. */
  async end(): Promise<void> {
    await this.#writer.close().catch((error) => this.#lost(error));
  }

  /** For whoever reads, now or later, it is as if the stream had ended. */
  stopReading(): void {
    this.#isStopped = true;
    this.#wake();
  }

  /** Reads to the real end, or to the limit, and drops it. */
  async drain(limitBytes: number): Promise<void> {
    this.#isStopped = false;
    this.#queue.clear();
    const from = this.readBytes;
    while (this.readBytes - from < limitBytes && (await this.#next()) !== null);
  }

  /** Ends both directions at once. Waiting calls reject with the reason. */
  destroy(reason: unknown): void {
    if (this.#destroyedBy !== null) return;
    this.#destroyedBy = reason;
    // Whether the stream had ended before does not matter any more.
    this.#reader.cancel(reason).catch(() => undefined);
    this.#writer.abort(reason).catch(() => undefined);
    this.#connection.abort?.(reason instanceof Error ? reason : new Error("the connection was ended"));
    this.#companion?.destroy(reason);
  }

  async #next(): Promise<Uint8Array | null> {
    for (;;) {
      const bytes = await this.#nextOrStop().catch((error) => this.#lost(error));
      if (this.#destroyedBy !== null) throw this.#destroyedBy;
      if (bytes === null) return null;
      if (bytes.byteLength === 0) continue;
      this.readBytes += bytes.byteLength;
      this.onActivity();
      return bytes;
    }
  }

  /** A read that was not waited for to its end is there for the next one. */
  async #nextOrStop(): Promise<Uint8Array | null> {
    if (this.#isStopped) return null;
    this.#pending ??= this.#reader.read();
    const stopped = new Promise<null>((resolve) => {
      this.#wake = () => resolve(null);
    });
    const result = await Promise.race([this.#pending, stopped]);
    if (result === null) return null;
    this.#pending = null;
    return result.value ?? null;
  }

  #lost(error: unknown): never {
    throw this.#destroyedBy ?? new EgressError("connection_lost", "the connection broke", error);
  }
}

/** Moves everything from one channel to the other, and its end too. */
export async function pump(from: Channel, to: Channel): Promise<void> {
  await pumpOpen(from, to);
  await to.end();
}

/** As `pump`, but leaves the target open. */
export async function pumpOpen(from: Channel, to: Channel): Promise<void> {
  for (let bytes = await from.read(); bytes !== null; bytes = await from.read()) await to.write(bytes);
}
