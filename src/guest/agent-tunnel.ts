import type { Frame } from "../vsock/frame-connection.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import { decodeCredit, encodeCredit, Message, TUNNEL_WINDOW_BYTES } from "./agent-protocol.ts";
import { ByteCollector } from "./byte-collector.ts";
import { CreditedSender } from "./credited-sender.ts";
import type { StreamHandler } from "./stream-table.ts";
import type { Tunnel } from "./tunnel.ts";

/** Bytes read here before the guest is told that it may send as many more */
const GRANT_BYTES = TUNNEL_WINDOW_BYTES / 4;

/**
 * A tunnel whose stream is open on both sides. Its end is told to `onEnd`, once. The web streams are made when somebody
 * uses them: a guest may open and reset tunnels much faster than that.
 */
export class AgentTunnel implements Tunnel, StreamHandler {
  #readable: ReadableStream<Uint8Array> | null = null;
  #writable: WritableStream<Uint8Array> | null = null;
  readonly #client: AgentClient;
  readonly #stream: number;
  readonly #sender: CreditedSender;
  readonly #onEnd: () => void;
  #reading: ReadableStreamDefaultController<Uint8Array> | null = null;
  #writing: WritableStreamDefaultController | null = null;
  /** What came and was not read yet. It is joined, so that many small pieces cost no more than their bytes */
  #unread = new ByteCollector();
  #creditBytes = TUNNEL_WINDOW_BYTES;
  #readBytes = 0;
  #isWanted = false;
  #isDropping = false;
  #hasReceivedEnd = false;
  #hasSentEnd = false;
  #isOver = false;
  #failure: Error | null = null;

  constructor(client: AgentClient, stream: number, onEnd: () => void = () => undefined) {
    this.#client = client;
    this.#stream = stream;
    this.#onEnd = onEnd;
    this.#sender = new CreditedSender(client, Message.DATA, TUNNEL_WINDOW_BYTES);
  }

  get readable(): ReadableStream<Uint8Array> {
    this.#readable ??= new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#reading = controller;
          if (this.#failure) controller.error(this.#failure);
          else if (this.#hasReceivedEnd && this.#unread.byteLength === 0) controller.close();
        },
        pull: () => this.#pull(),
        cancel: () => this.#stopReading(),
      },
      { highWaterMark: 0 },
    );
    return this.#readable;
  }

  get writable(): WritableStream<Uint8Array> {
    this.#writable ??= new WritableStream<Uint8Array>({
      start: (controller) => {
        this.#writing = controller;
        if (this.#failure) controller.error(this.#failure);
      },
      write: (bytes) => this.#write(bytes),
      close: () => this.#endWriting(),
      abort: (reason) => this.abort(reason),
    });
    return this.#writable;
  }

  /** Both directions have ended, or it was reset */
  get isOver(): boolean {
    return this.#isOver;
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.#cancel();
    this.#fail(reason);
  }

  /** Throws what breaks the protocol. */
  onFrame({ type, payload }: Frame): void {
    if (type === Message.DATA) this.#take(payload);
    else if (type === Message.EOF) this.#takeEnd();
    else if (type === Message.CREDIT) this.#takeCredit(decodeCredit(payload));
    else throw new RangeError(`type ${type} does not belong to a tunnel`);
  }

  onError(error: AgentError): void {
    this.#fail(error);
  }

  #take(payload: Uint8Array): void {
    if (this.#hasReceivedEnd) throw new RangeError("DATA behind a tunnel's EOF");
    if (payload.byteLength === 0 || payload.byteLength > this.#creditBytes)
      throw new RangeError(`${payload.byteLength} bytes of DATA, ${this.#creditBytes} were granted`);
    this.#creditBytes -= payload.byteLength;
    if (this.#isDropping) return;
    this.#unread.add(payload);
    if (this.#isWanted) this.#pull();
  }

  #takeEnd(): void {
    if (this.#hasReceivedEnd) throw new RangeError("a second EOF of a tunnel");
    this.#hasReceivedEnd = true;
    if (this.#unread.byteLength === 0 && !this.#isDropping) this.#reading?.close();
    if (this.#hasSentEnd) this.#end();
  }

  #takeCredit(bytes: number): void {
    if (this.#sender.creditBytes + bytes > TUNNEL_WINDOW_BYTES)
      throw new RangeError("more CREDIT than a tunnel's window");
    this.#sender.grant(bytes);
  }

  #pull(): void {
    this.#isWanted = this.#unread.byteLength === 0;
    if (this.#isWanted) return;
    const bytes = this.#unread.take();
    this.#unread = new ByteCollector();
    this.#readBytes += bytes.byteLength;
    // Granted first: whoever gets the bytes may end the tunnel at once.
    if (this.#readBytes >= GRANT_BYTES) this.#grant();
    this.#reading?.enqueue(bytes);
    if (this.#hasReceivedEnd) this.#reading?.close();
  }

  #grant(): void {
    if (this.#hasReceivedEnd || this.#isOver) return;
    this.#creditBytes += this.#readBytes;
    this.#trySend(Message.CREDIT, encodeCredit(this.#readBytes));
    this.#readBytes = 0;
  }

  /** Nothing more is granted, so a guest that goes on stands still until this side has said all it has to say. */
  #stopReading(): void {
    this.#isDropping = true;
    this.#unread = new ByteCollector();
    if (this.#hasSentEnd && !this.#isOver) this.#dismiss();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (!(await this.#sender.sendAll(this.#stream, bytes)))
      throw this.#failure ?? new AgentError("aborted", "the tunnel has ended");
  }

  #endWriting(): void {
    if (this.#isOver) return;
    this.#client.send(Message.EOF, this.#stream);
    this.#hasSentEnd = true;
    if (this.#hasReceivedEnd) this.#end();
    else if (this.#isDropping) this.#dismiss();
  }

  /** Behind EOF, CANCEL is no reset: what was sent is still delivered. */
  #dismiss(): void {
    this.#cancel();
    this.#end();
  }

  #cancel(): void {
    this.#client.endStream(this.#stream);
    this.#trySend(Message.CANCEL);
  }

  #trySend(type: number, payload?: Uint8Array): void {
    try {
      this.#client.send(type, this.#stream, payload);
    } catch (error) {
      // A lost connection is told to every stream of it.
      if (!(error instanceof AgentError)) throw error;
    }
  }

  #fail(reason: Error): void {
    if (this.#isOver) return;
    this.#failure = reason;
    this.#unread = new ByteCollector();
    this.#end();
    // Neither does anything to a stream that has ended.
    this.#reading?.error(reason);
    this.#writing?.error(reason);
  }

  #end(): void {
    this.#isOver = true;
    this.#client.endStream(this.#stream);
    this.#sender.stop();
    this.#onEnd();
  }
}
