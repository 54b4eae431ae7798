import type { Readable, Writable } from "node:stream";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { LineSplitter } from "./line-splitter.ts";
import { type LineRefusal, readMessage } from "./read-message.ts";

const MIB = 1_048_576;

export interface StdioLimits {
  /** Longest message taken, in `bytes` */
  lineBytes: number;
  /** Output the client has not taken above which reading stops, in `bytes` */
  unsentBytes: number;
}

const DEFAULT_LIMITS: StdioLimits = { lineBytes: 64 * MIB, unsentBytes: 64 * MIB };

/**
 * Newline-separated JSON-RPC over two streams. A line that is no message is answered and skipped.
 * The end of input does not close the transport: answers that are still due can be sent.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T) => void;
  /** Called once, when the client has nothing more to say or no longer listens */
  onend?: (reason: string) => void;

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #limits: StdioLimits;
  #unsentBytes = 0;
  #outputBroken = false;
  #ended = false;
  #closed = false;
  #wakeReader: (() => void) | null = null;
  #drained: (() => void)[] = [];

  constructor(input: Readable, output: Writable, limits: StdioLimits = DEFAULT_LIMITS) {
    this.#input = input;
    this.#output = output;
    this.#limits = limits;
  }

  async start(): Promise<void> {
    this.#output.on("error", (error) => this.#outputFailed(error));
    void this.#read();
  }

  send(message: JSONRPCMessage | LineRefusal): Promise<void> {
    if (this.#closed || this.#outputBroken) return Promise.reject(new Error("The client no longer reads."));
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
    this.#unsentBytes += bytes.length;
    return new Promise((resolve, reject) => {
      this.#output.write(bytes, (error) => {
        this.#sent(bytes.length);
        if (error) reject(error);
        else resolve();
      });
    });
  }

  /** Resolves when all output has left, or can no longer leave. */
  flushed(): Promise<void> {
    if (this.#unsentBytes === 0 || this.#outputBroken) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#wakeReader?.();
    this.#input.destroy();
    this.onclose?.();
  }

  async #read(): Promise<void> {
    const splitter = new LineSplitter(this.#limits.lineBytes);
    try {
      for await (const chunk of this.#input as AsyncIterable<Uint8Array>) {
        for (const line of splitter.push(chunk)) {
          if (this.#closed) return;
          this.#deliver(readMessage(line, this.#limits.lineBytes));
        }
        await this.#roomForOutput();
      }
      this.#end("stdin ended");
    } catch (error) {
      if (!this.#closed) this.onerror?.(toError(error));
      this.#end("stdin failed");
    }
  }

  #deliver(read: ReturnType<typeof readMessage>): void {
    if (!read) return;
    if ("message" in read) this.onmessage?.(read.message);
    else this.send(read.refusal).catch((error: unknown) => this.onerror?.(toError(error)));
  }

  /** A client that does not read is not read from either, so that its answers do not pile up. */
  async #roomForOutput(): Promise<void> {
    while (this.#unsentBytes > this.#limits.unsentBytes && !this.#closed && !this.#outputBroken) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  #sent(sizeBytes: number): void {
    this.#unsentBytes -= sizeBytes;
    this.#wakeReader?.();
    if (this.#unsentBytes === 0) this.#releaseFlushed();
  }

  #outputFailed(error: Error): void {
    if (this.#outputBroken) return;
    this.#outputBroken = true;
    this.onerror?.(error);
    this.#wakeReader?.();
    this.#releaseFlushed();
    this.#end("stdout failed");
  }

  #releaseFlushed(): void {
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  #end(reason: string): void {
    if (this.#ended || this.#closed) return;
    this.#ended = true;
    this.onend?.(reason);
  }
}

function toError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}
