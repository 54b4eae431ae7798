import { refusal } from "./http-refusal.ts";

export interface BodyLimits {
  /** All bodies being received together, in `bytes` */
  totalBytes: number;
  /** For a client to send one, in `ms` */
  deadlineMs: number;
}

const MIB = 1_048_576;
const DEFAULT_LIMITS: BodyLimits = { totalBytes: 256 * MIB, deadlineMs: 120_000 };

/** Receives bodies of requests, each and all together within limits. */
export class HttpBodies {
  readonly #limits: BodyLimits;
  #heldBytes = 0;

  constructor(limits: BodyLimits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  /** The whole body, or the answer to give. */
  async read(request: Request, limitBytes: number): Promise<Uint8Array | Response> {
    const announced = Number(request.headers.get("content-length") ?? 0);
    if (announced > limitBytes) return tooLarge(limitBytes);
    if (request.body === null) return new Uint8Array();
    const reader = request.body.getReader();
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const timer = setTimeout(() => resolve("late"), this.#limits.deadlineMs);
    const pieces: Uint8Array[] = [];
    let sizeBytes = 0;
    try {
      for (;;) {
        const read = await Promise.race([reader.read(), late]);
        if (read === "late")
          return refusal(408, `The body did not arrive within ${this.#limits.deadlineMs} ms.`);
        if (read.done) return Buffer.concat(pieces);
        sizeBytes += read.value.length;
        this.#heldBytes += read.value.length;
        if (sizeBytes > limitBytes) return tooLarge(limitBytes);
        if (this.#heldBytes > this.#limits.totalBytes) return busy();
        pieces.push(read.value);
      }
    } catch (error) {
      return refusal(400, `The body did not arrive: ${(error as Error).message}`);
    } finally {
      clearTimeout(timer);
      this.#heldBytes -= sizeBytes;
      void reader.cancel().catch(() => undefined); // the connection may be gone already
    }
  }
}

function tooLarge(limitBytes: number): Response {
  return refusal(413, `The body is too large; the limit is ${limitBytes} bytes. Send large files in parts.`);
}

function busy(): Response {
  return refusal(503, "Too much is being received at once. Try again in a moment.", { "Retry-After": "1" });
}
