import { parseName } from "./destination.ts";

/** RFC 8446, sections 4.1.2 and 5.1; RFC 6066, section 3 */
const HANDSHAKE_RECORD = 22;
const TLS_MAJOR = 3;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const MAX_RECORD_BYTES = 16_384;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
/** What is sent is 2 KiB at most, even with post-quantum keys */
export const MAX_CLIENT_HELLO_BYTES = 32_768;

export type ClientHelloAnswer =
  | { state: "more" }
  /** The name in the clear, in canonical form. With ECH it is the outer one: the inner one is for the server only. */
  | { state: "hello"; serverName: string | null }
  | { state: "invalid"; why: string };

/**
 * Whether bytes at the start of a stream may be those of a ClientHello; true of none at all. The type of the record
 * decides alone: servers are told not to look at its version.
 */
export function mayBeClientHello(bytes: Uint8Array): boolean {
  return (bytes[0] ?? HANDSHAKE_RECORD) === HANDSHAKE_RECORD;
}

/** Reads the first message of a TLS client from pieces of any size, over as many records as it takes. */
export class ClientHelloReader {
  readonly #message = new Uint8Array(MAX_CLIENT_HELLO_BYTES);
  #messageBytes = 0;
  #header: number[] = [];
  #leftInRecord = 0;

  push(bytes: Uint8Array): ClientHelloAnswer {
    for (let at = 0; at < bytes.byteLength; ) {
      if (this.#leftInRecord === 0) {
        this.#header.push(bytes[at++]!);
        const why = this.#readHeader();
        if (why !== null) return { state: "invalid", why };
        continue;
      }
      const piece = bytes.subarray(at, at + this.#leftInRecord);
      at += piece.byteLength;
      this.#leftInRecord -= piece.byteLength;
      const answer = this.#append(piece);
      if (answer.state !== "more") return answer;
    }
    return { state: "more" };
  }

  #readHeader(): string | null {
    const [type, major = TLS_MAJOR] = this.#header;
    if (type !== HANDSHAKE_RECORD) return "it is no TLS handshake";
    if (major !== TLS_MAJOR) return "a record is of another version than any TLS";
    if (this.#header.length < RECORD_HEADER_BYTES) return null;
    const length = this.#header[3]! * 256 + this.#header[4]!;
    this.#header = [];
    this.#leftInRecord = length;
    return length === 0 || length > MAX_RECORD_BYTES ? "a record has no length that TLS allows" : null;
  }

  #append(piece: Uint8Array): ClientHelloAnswer {
    if (this.#messageBytes + piece.byteLength > MAX_CLIENT_HELLO_BYTES)
      return { state: "invalid", why: "it is too large" };
    this.#message.set(piece, this.#messageBytes);
    this.#messageBytes += piece.byteLength;
    if (this.#message[0] !== CLIENT_HELLO) return { state: "invalid", why: "it is no ClientHello" };
    if (this.#messageBytes < MESSAGE_HEADER_BYTES) return { state: "more" };
    const length = this.#message[1]! * 65_536 + this.#message[2]! * 256 + this.#message[3]!;
    const end = MESSAGE_HEADER_BYTES + length;
    if (end > MAX_CLIENT_HELLO_BYTES) return { state: "invalid", why: "it is too large" };
    if (this.#messageBytes < end) return { state: "more" };
    try {
      return {
        state: "hello",
        serverName: serverNameOf(this.#message.subarray(MESSAGE_HEADER_BYTES, end)),
      };
    } catch (error) {
      return { state: "invalid", why: (error as Error).message };
    }
  }
}

/** Throws an Error that says what is wrong with the message. */
function serverNameOf(body: Uint8Array): string | null {
  const hello = new Cursor(body);
  hello.skip(2 + 32);
  hello.block(1);
  hello.block(2);
  hello.block(1);
  if (hello.left === 0) return null;
  const extensions = new Cursor(hello.block(2));
  if (hello.left > 0) throw new Error("bytes follow its extensions");
  let serverName: string | null = null;
  while (extensions.left > 0) {
    const type = extensions.number(2);
    const content = extensions.block(2);
    if (type !== SERVER_NAME) continue;
    if (serverName !== null) throw new Error("it has two server names");
    serverName = nameIn(content);
  }
  return serverName;
}

function nameIn(extension: Uint8Array): string {
  const outer = new Cursor(extension);
  const list = new Cursor(outer.block(2));
  const type = list.number(1);
  const name = parseName(Buffer.from(list.block(2)).toString("latin1"));
  if (type !== 0 || name === null || list.left > 0 || outer.left > 0)
    throw new Error("its server name is no host name");
  return name;
}

class Cursor {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.byteLength - this.#at;
  }

  skip(count: number): Uint8Array {
    if (count > this.left) throw new Error("it ends too early");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  /** A big-endian number */
  number(byteCount: number): number {
    return this.skip(byteCount).reduce((value, byte) => value * 256 + byte, 0);
  }

  /** What follows a length of so many bytes */
  block(lengthBytes: number): Uint8Array {
    return this.skip(this.number(lengthBytes));
  }
}
