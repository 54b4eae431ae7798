/** How the body of an answer ended: all was taken, or its client left. */
export type StreamEnd = "taken" | "left";

export interface StreamWatch {
  /** Called once */
  onEnd: (end: StreamEnd) => void;
  /** Aborts when the client leaves */
  signal: AbortSignal;
}

/** A comment of server-sent events: Bun sends the head of an answer with its first bytes, and those may be far off. */
const FIRST_BYTES = new TextEncoder().encode(": open\n\n");

/** The same events, piece by piece as the client takes them: the connection of one that takes none falls silent. */
export function watchStream(
  source: ReadableStream<Uint8Array>,
  { onEnd, signal }: StreamWatch,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let ended = false;
  const end = (how: StreamEnd) => {
    if (ended) return;
    ended = true;
    signal.removeEventListener("abort", leave);
    if (how === "left") reader.cancel().catch(() => undefined); // the source may be closed already
    onEnd(how);
  };
  const leave = () => end("left");
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(FIRST_BYTES),
      async pull(controller) {
        const read = await reader.read();
        if (read.done) {
          controller.close();
          end("taken");
          return;
        }
        controller.enqueue(read.value);
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}
