import type { ExitReply } from "./agent-protocol.ts";
import { Message } from "./agent-protocol.ts";
import { ByteCollector } from "./byte-collector.ts";

export interface CapturedStream {
  head: Uint8Array;
  tail: Uint8Array;
  /** All the stream had; head and tail may be less */
  totalBytes: number;
  /** File in the guest that begins with the stream's first byte; null when there is none */
  path: string | null;
  /** The file has all of the stream, not only its start */
  isPathWhole: boolean;
}

export interface CommandEnd {
  exit: ExitReply;
  stdout: CapturedStream;
  stderr: CapturedStream;
}

/** Whether head and tail are less than the stream had. */
export function isCut({
  head,
  tail,
  totalBytes,
}: Pick<CapturedStream, "head" | "tail" | "totalBytes">): boolean {
  return totalBytes > head.byteLength + tail.byteLength;
}

/** Collects what arrives of both streams, and refuses more than was asked for and counts that do not add up. */
export class OutputCapture {
  readonly #limitBytes: number;
  readonly #stdout = new ByteCollector();
  readonly #stderr = new ByteCollector();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  add(type: number, payload: Uint8Array): void {
    const collector = type === Message.STDOUT ? this.#stdout : this.#stderr;
    if (collector.byteLength + payload.byteLength > this.#limitBytes)
      throw new RangeError("the agent sent more output than was asked for");
    collector.add(payload);
  }

  /** The streams' beginnings as far as they came. Their tails follow at the end and do not belong to them. */
  heads(): { stdout: Uint8Array; stderr: Uint8Array } {
    const headBytes = Math.floor(this.#limitBytes / 2);
    return {
      stdout: this.#stdout.take().subarray(0, headBytes),
      stderr: this.#stderr.take().subarray(0, headBytes),
    };
  }

  finish(exit: ExitReply): CommandEnd {
    return {
      exit,
      stdout: split(this.#stdout.take(), {
        headBytes: exit.stdout_head_bytes,
        totalBytes: exit.stdout_bytes,
        path: exit.stdout_path,
        isPathWhole: exit.stdout_spool_complete,
      }),
      stderr: split(this.#stderr.take(), {
        headBytes: exit.stderr_head_bytes,
        totalBytes: exit.stderr_bytes,
        path: exit.stderr_path,
        isPathWhole: exit.stderr_spool_complete,
      }),
    };
  }
}

function split(
  all: Uint8Array,
  { headBytes, ...rest }: { headBytes: number } & Omit<CapturedStream, "head" | "tail">,
): CapturedStream {
  if (headBytes > all.byteLength || rest.totalBytes < all.byteLength)
    throw new RangeError("the agent's output counts do not add up");
  return { head: all.subarray(0, headBytes), tail: all.subarray(headBytes), ...rest };
}
