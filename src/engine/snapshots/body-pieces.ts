import { jsonError } from "../engine-error.ts";
import { bundleRefused } from "./bundle-error.ts";

/** A bundle as it comes. Throws the signal's reason when that comes, and 408 when nothing does for `idleMs`. */
export async function* bodyPieces(
  body: ReadableStream<Uint8Array>,
  idleMs: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  const reader = body.getReader();
  // Whoever waits for the sender is answered that there is no more.
  const giveUp = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", giveUp, { once: true });
  let isStalled = false;
  try {
    for (;;) {
      const timer = setTimeout(() => {
        isStalled = true;
        giveUp();
      }, idleMs);
      const read = reader.read().catch((error: Error) => brokenOff(error));
      const { done, value } = await read.finally(() => clearTimeout(timer));
      signal.throwIfAborted();
      if (isStalled) throw jsonError(408, "slow_body", `nothing of the body came for ${idleMs / 1000} s`);
      if (value instanceof Error) throw value;
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", giveUp);
    reader.releaseLock();
  }
}

/** Read before it is thrown: with a sender that is gone the signal's reason comes first. */
function brokenOff(error: Error): { done: true; value: Error } {
  const reason = `the archive broke off: ${error.message}`;
  return { done: true, value: bundleRefused("invalid_snapshot_bundle", reason, error) };
}
