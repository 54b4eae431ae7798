import { FRAME_OVERHEAD_BYTES, type Frame, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES } from "./frame-connection.ts";

/** Bytes before the payload: `u32 LE length`, `u8 type`, `u32 LE stream` */
export const HEADER_BYTES = 9;

/** Writes a frame's header at `offset`. The payload's bounds are the caller's to check. */
export function writeHeader(
  target: DataView,
  offset: number,
  type: number,
  stream: number,
  payloadBytes: number,
): void {
  target.setUint32(offset, payloadBytes + FRAME_OVERHEAD_BYTES, true);
  target.setUint8(offset + 4, type);
  target.setUint32(offset + 5, stream, true);
}

export function isPayloadSize(sizeBytes: number): boolean {
  return sizeBytes <= MAX_PAYLOAD_BYTES;
}

/** One frame as bytes, header and payload. */
export function encodeFrame({ type, stream, payload }: Frame): Uint8Array {
  if (!isPayloadSize(payload.byteLength)) {
    throw new RangeError(`a payload of ${payload.byteLength} bytes does not fit into a frame`);
  }
  const bytes = new Uint8Array(HEADER_BYTES + payload.byteLength);
  writeHeader(new DataView(bytes.buffer), 0, type, stream, payload.byteLength);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** Cuts a byte stream into frames; how the stream is split into pieces makes no difference. */
export class FrameDecoder {
  /** The first length outside the bounds; nothing behind it is decoded */
  invalidLength: number | null = null;
  readonly #header = new Uint8Array(HEADER_BYTES);
  readonly #view = new DataView(this.#header.buffer);
  #headerBytes = 0;
  #payload: Uint8Array | null = null;
  #payloadBytes = 0;

  /** Inside a frame: an end of stream here loses data */
  get isMidFrame(): boolean {
    return this.#headerBytes > 0;
  }

  /** Takes the next piece, which it may keep, and returns the frames it completes. */
  push(piece: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    while (this.invalidLength === null) {
      if (this.#payload === null) {
        at = this.#takeHeader(piece, at);
        if (this.#headerBytes < HEADER_BYTES || this.invalidLength !== null) break;
      }
      const [payload, next] = this.#takePayload(piece, at);
      at = next;
      if (payload === null) break;
      frames.push({ type: this.#view.getUint8(4), stream: this.#view.getUint32(5, true), payload });
      this.#headerBytes = 0;
    }
    return frames;
  }

  #takeHeader(piece: Uint8Array, at: number): number {
    const end = Math.min(piece.byteLength, at + HEADER_BYTES - this.#headerBytes);
    while (at < end) this.#header[this.#headerBytes++] = piece[at++]!;
    if (this.#headerBytes >= 4) {
      const length = this.#view.getUint32(0, true);
      if (length < FRAME_OVERHEAD_BYTES || length > MAX_FRAME_BYTES) this.invalidLength = length;
    }
    return at;
  }

  /** The complete payload, or null when the piece ends before it. */
  #takePayload(piece: Uint8Array, at: number): [Uint8Array | null, number] {
    const sizeBytes = this.#view.getUint32(0, true) - FRAME_OVERHEAD_BYTES;
    // A payload that lies in one piece is a view of it: no copy.
    if (this.#payload === null && at + sizeBytes <= piece.byteLength) {
      return [piece.subarray(at, at + sizeBytes), at + sizeBytes];
    }
    this.#payload ??= new Uint8Array(sizeBytes);
    const part = piece.subarray(at, at + sizeBytes - this.#payloadBytes);
    this.#payload.set(part, this.#payloadBytes);
    this.#payloadBytes += part.byteLength;
    if (this.#payloadBytes < sizeBytes) return [null, piece.byteLength];
    const whole = this.#payload;
    this.#payload = null;
    this.#payloadBytes = 0;
    return [whole, at + part.byteLength];
  }
}
