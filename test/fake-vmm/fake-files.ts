import { encodeCredit, INITIAL_CREDIT_BYTES, Message } from "../../src/guest/agent-protocol.ts";
import type { Frame } from "../../src/vsock/frame-connection.ts";
import type { Peer } from "./peer.ts";

const CHUNK_BYTES = 200_000;

/** What a file stream does with the frames behind its request. */
export interface FileStream {
  take(frame: Frame): void;
}

/** A PUT under way. The sender may be this much ahead of the grants; a fake that grants nothing stalls it. */
export class FakePut implements FileStream {
  receivedBytes = 0;
  readonly #parts: Uint8Array[] = [];

  constructor(
    readonly peer: Peer,
    readonly stream: number,
    readonly request: { path: string; bytes: number },
    readonly files: Map<string, Uint8Array>,
    readonly grants: boolean,
  ) {
    this.#finishWhenWhole();
  }

  take({ type, payload }: Frame): void {
    if (type === Message.CANCEL) {
      this.peer.sendJson(Message.ERROR, this.stream, { code: "cancelled", errno: null, message: "" });
      return;
    }
    this.#parts.push(payload);
    this.receivedBytes += payload.byteLength;
    if (this.grants) this.peer.sendFrame(Message.CREDIT, this.stream, encodeCredit(payload.byteLength));
    this.#finishWhenWhole();
  }

  #finishWhenWhole(): void {
    if (this.receivedBytes !== this.request.bytes) return;
    this.files.set(this.request.path, Buffer.concat(this.#parts));
    this.peer.sendJson(Message.OK, this.stream, { bytes: this.receivedBytes });
  }
}

/** A GET under way, which sends no more than the host granted. */
export class FakeGet implements FileStream {
  #creditBytes = INITIAL_CREDIT_BYTES;
  #rest: Uint8Array;
  readonly #sizes: { bytes: number; file_bytes: number };

  constructor(
    readonly peer: Peer,
    readonly stream: number,
    request: { offset: number; bytes: number | null },
    content: Uint8Array,
  ) {
    const end = request.bytes === null ? content.byteLength : request.offset + request.bytes;
    this.#rest = content.subarray(request.offset, end);
    this.#sizes = { bytes: this.#rest.byteLength, file_bytes: content.byteLength };
    this.#send();
  }

  take({ type, payload }: Frame): void {
    if (type !== Message.CREDIT) return;
    this.#creditBytes += new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
    this.#send();
  }

  #send(): void {
    while (this.#rest.byteLength > 0) {
      const size = Math.min(CHUNK_BYTES, this.#creditBytes, this.#rest.byteLength);
      if (size === 0) return;
      this.peer.sendFrame(Message.DATA, this.stream, this.#rest.subarray(0, size));
      this.#rest = this.#rest.subarray(size);
      this.#creditBytes -= size;
    }
    this.peer.sendJson(Message.OK, this.stream, this.#sizes);
  }
}
