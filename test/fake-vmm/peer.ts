import type { Socket } from "bun";
import { encodeFrame, FrameDecoder } from "../../src/vsock/frame-codec.ts";
import type { Frame } from "../../src/vsock/frame-connection.ts";

/** The guest's end of one connection: the CONNECT line, then frames. It sends everything it is given, in order. */
export class Peer {
  readonly #socket: Socket<Peer>;
  readonly #decoder = new FrameDecoder();
  #outbox = new Uint8Array(0);
  #endsWhenSent = false;
  /** What came before the first newline; null once it was whole */
  #line: string | null = "";

  constructor(socket: Socket<Peer>) {
    this.#socket = socket;
  }

  /** The frames that these bytes complete, and the CONNECT line when it did. */
  receive(bytes: Uint8Array): { connectLine: string | null; frames: Frame[] } {
    if (this.#line === null) return { connectLine: null, frames: this.#decoder.push(bytes) };
    const newline = bytes.indexOf(0x0a);
    if (newline < 0) {
      this.#line += Buffer.from(bytes).toString("latin1");
      return { connectLine: null, frames: [] };
    }
    const connectLine = this.#line + Buffer.from(bytes.subarray(0, newline)).toString("latin1");
    this.#line = null;
    return { connectLine, frames: this.#decoder.push(bytes.subarray(newline + 1)) };
  }

  sendFrame(type: number, stream: number, payload: Uint8Array = new Uint8Array(0)): void {
    this.sendBytes(encodeFrame({ type, stream, payload }));
  }

  sendJson(type: number, stream: number, value: object): void {
    this.sendFrame(type, stream, Buffer.from(JSON.stringify(value)));
  }

  sendBytes(bytes: Uint8Array): void {
    this.#outbox = Buffer.concat([this.#outbox, bytes]);
    this.flush();
  }

  /** Event: the socket takes bytes again. */
  flush(): void {
    if (this.#outbox.byteLength > 0) {
      const written = this.#socket.write(this.#outbox);
      if (written > 0) this.#outbox = this.#outbox.subarray(written);
    }
    if (this.#endsWhenSent && this.#outbox.byteLength === 0) this.#socket.end();
  }

  /** Takes no more bytes from the host, as a guest that hangs. */
  stopReading(): void {
    this.#socket.pause();
  }

  /** Closes once everything is sent. */
  end(): void {
    this.#endsWhenSent = true;
    this.flush();
  }

  terminate(): void {
    this.#socket.terminate();
  }
}
