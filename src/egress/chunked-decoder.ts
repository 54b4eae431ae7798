import { badRequest } from "./http-head.ts";

const MAX_LINE_BYTES = 1024;
const MAX_TRAILER_BYTES = 8192;
const SIZE_LINE = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/;
const TRAILER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/;
const [CR, LF] = [0x0d, 0x0a];

/** Takes a chunked body apart (RFC 9112, section 7.1), in pieces of any size. Extensions and trailers are dropped. */
export class ChunkedDecoder {
  #state: "size" | "data" | "data_end" | "trailer" | "done" = "size";
  #line = "";
  #left = 0;
  #trailerBytes = 0;

  get isDone(): boolean {
    return this.#state === "done";
  }

  /** The data in these bytes, and how many of them belong to the body. Throws `bad_request`. */
  push(bytes: Uint8Array): { data: Uint8Array[]; length: number } {
    const data: Uint8Array[] = [];
    let at = 0;
    while (at < bytes.byteLength && !this.isDone) {
      if (this.#state === "data") {
        const piece = bytes.subarray(at, at + this.#left);
        data.push(piece);
        at += piece.byteLength;
        this.#left -= piece.byteLength;
        if (this.#left === 0) this.#state = "data_end";
      } else {
        const end = bytes.indexOf(LF, at);
        const stop = end < 0 ? bytes.byteLength : end + 1;
        this.#line += Buffer.from(bytes.subarray(at, stop)).toString("latin1");
        at = stop;
        if (this.#line.length > MAX_LINE_BYTES) throw badRequest("a line of its chunked body is too long");
        if (end >= 0) this.#endLine();
      }
    }
    return { data, length: at };
  }

  #endLine(): void {
    if (this.#line.charCodeAt(this.#line.length - 2) !== CR)
      throw badRequest("a line of its chunked body does not end with CRLF");
    const line = this.#line.slice(0, -2);
    this.#line = "";
    if (this.#state === "size") this.#startChunk(line);
    else if (this.#state === "data_end") this.#endChunk(line);
    else this.#readTrailer(line);
  }

  #startChunk(line: string): void {
    const size = SIZE_LINE.exec(line)?.[1];
    if (size === undefined) throw badRequest("a chunk of its body has no length");
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "trailer" : "data";
  }

  #endChunk(line: string): void {
    if (line !== "") throw badRequest("a chunk of its body is longer than it says");
    this.#state = "size";
  }

  #readTrailer(line: string): void {
    this.#trailerBytes += line.length;
    if (line === "") this.#state = "done";
    else if (!TRAILER.test(line) || this.#trailerBytes > MAX_TRAILER_BYTES)
      throw badRequest("the end of its chunked body is malformed");
  }
}
