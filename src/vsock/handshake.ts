/** Longest answer, newline included, in bytes */
export const MAX_LINE_BYTES = 128;

export type HandshakeAnswer =
  | { state: "more" }
  /** `rest` are the bytes behind the newline: the start of the first frame */
  | { state: "ok"; number: number; rest: Uint8Array }
  | { state: "handshake_oversized" }
  | { state: "handshake_rejected" };

/** What the host says first, exactly. */
export function connectLine(port: number): string {
  return `CONNECT ${port}\n`;
}

const NEWLINE = 0x0a;
const OK_LINE = /^OK ([0-9]{1,10})$/;
const MAX_U32 = 0xffff_ffff;

/** Reads the peer's answer from pieces of any size. Layout and limits: docs/wire/handshake.md. */
export class HandshakeReader {
  #line = "";

  push(piece: Uint8Array): HandshakeAnswer {
    for (let at = 0; at < piece.byteLength; at++) {
      const byte = piece[at]!;
      if (byte === NEWLINE) return this.#judge(piece.subarray(at + 1));
      this.#line += String.fromCharCode(byte);
      if (this.#line.length === MAX_LINE_BYTES) return { state: "handshake_oversized" };
    }
    return { state: "more" };
  }

  #judge(rest: Uint8Array): HandshakeAnswer {
    const number = Number(OK_LINE.exec(this.#line)?.[1] ?? Number.NaN);
    return number <= MAX_U32 ? { state: "ok", number, rest } : { state: "handshake_rejected" };
  }
}
