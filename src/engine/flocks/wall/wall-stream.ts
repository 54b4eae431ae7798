import type { WallMessage } from "./wall-message.ts";
import type { WallReader } from "./wall-reader.ts";

/** A comment, which clients skip. The server sends an answer's head with its first bytes, and these must not wait. */
const OPENING = Buffer.from(":\n\n");

/** One event a message, as text/event-stream. Ends with the reader; a client that goes ends the reader. */
export function wallStream(reader: WallReader): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (reader.hasCaughtUp) controller.enqueue(OPENING);
    },
    async pull(controller) {
      const messages = await reader.next();
      if (messages === null) controller.close();
      else controller.enqueue(Buffer.from(messages.map(event).join("")));
    },
    cancel() {
      reader.cutOff();
    },
  });
}

function event(message: WallMessage): string {
  return `data: ${JSON.stringify(message)}\n\n`;
}
