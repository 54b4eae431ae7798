import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket, UnixSocketListener } from "bun";
import { FrameDecoder } from "../../../src/vsock/frame-codec.ts";
import type { Frame } from "../../../src/vsock/frame-connection.ts";

/** One accepted connection of a `FakePeer`. */
export class PeerConnection {
  /** The first line, once it is complete */
  request = "";
  readonly frames: Frame[] = [];
  receivedBytes = 0;
  isClosed = false;
  readonly #socket: Socket<PeerConnection>;
  readonly #decoder = new FrameDecoder();
  #queue: Uint8Array[] = [];

  constructor(socket: Socket<PeerConnection>) {
    this.#socket = socket;
  }

  /** Bytes that wait because the other side does not read */
  get queuedBytes(): number {
    return this.#queue.reduce((sum, piece) => sum + piece.byteLength, 0);
  }

  send(...pieces: (Uint8Array | string)[]): void {
    for (const piece of pieces) this.#queue.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    this.flush();
  }

  flush(): void {
    while (this.#queue.length > 0) {
      const written = Math.max(0, this.#socket.write(this.#queue[0]!));
      this.#queue[0] = this.#queue[0]!.subarray(written);
      if (this.#queue[0].byteLength > 0) return;
      this.#queue.shift();
    }
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.end();
  }

  /** Takes bytes; true when they completed the request line. */
  receive(bytes: Uint8Array): boolean {
    if (this.request.endsWith("\n")) {
      this.#take(bytes);
      return false;
    }
    const end = bytes.indexOf(0x0a) + 1;
    this.request += Buffer.from(end === 0 ? bytes : bytes.subarray(0, end)).toString("latin1");
    if (end === 0) return false;
    this.#take(bytes.subarray(end));
    return true;
  }

  #take(bytes: Uint8Array): void {
    this.receivedBytes += bytes.byteLength;
    this.frames.push(...this.#decoder.push(bytes));
  }
}

/** Plays the VMM: listens on a socket in its own directory, and answers CONNECT as told. */
export class FakePeer implements Disposable {
  readonly path: string;
  readonly connections: PeerConnection[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), "vsock-"));
  readonly #listener: UnixSocketListener<PeerConnection>;

  /** `onRequest` runs when a request line is complete; by default it answers OK. */
  constructor(onRequest: (connection: PeerConnection) => void = (connection) => connection.send("OK 1\n")) {
    this.path = join(this.#directory, "vsock.sock");
    this.#listener = Bun.listen<PeerConnection>({
      unix: this.path,
      socket: {
        open: (socket) => {
          socket.data = new PeerConnection(socket);
          this.connections.push(socket.data);
        },
        data: (socket, bytes) => {
          if (socket.data.receive(bytes)) onRequest(socket.data);
        },
        drain: (socket) => socket.data.flush(),
        close: (socket) => {
          socket.data.isClosed = true;
        },
      },
    });
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Waits for a condition; throws after 60 s, which only a broken program needs. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`waited 60 s for ${what}`);
    await Bun.sleep(1);
  }
}
