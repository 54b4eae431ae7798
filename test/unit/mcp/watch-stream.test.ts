import { expect, test } from "bun:test";
import { type StreamEnd, watchStream } from "../../../src/mcp/watch-stream.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function watch(source: ReadableStream<Uint8Array>, signal = new AbortController().signal) {
  const ends: StreamEnd[] = [];
  return { ends, body: watchStream(source, { signal, onEnd: (end) => void ends.push(end) }) };
}

/** A source that never ends by itself, and whether it was cancelled. */
function endless() {
  const state = { cancelled: false };
  const source = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytes("x")),
    cancel() {
      state.cancelled = true;
    },
  });
  return { state, source };
}

test("begins with a comment, passes on the rest, and tells that all was taken", async () => {
  const { ends, body } = watch(new Blob(["data: 1\n\n"]).stream());
  expect(await new Response(body).text()).toBe(": open\n\ndata: 1\n\n");
  expect(ends).toEqual(["taken"]);
});

test("takes no more of the source than its reader takes", async () => {
  let pulled = 0;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(bytes("x"));
    },
  });
  const { body } = watch(source);
  const reader = body.getReader();
  for (let i = 0; i < 3; i++) await reader.read();
  await Bun.sleep(5);
  expect(pulled).toBeLessThanOrEqual(4); // the comment and two pieces were read, and the source is one ahead
  await reader.cancel();
});

test("a reader that leaves ends the source, once", async () => {
  const { state, source } = endless();
  const leaving = new AbortController();
  const { ends, body } = watch(source, leaving.signal);
  const reader = body.getReader();
  await reader.read();
  await reader.cancel();
  leaving.abort();
  expect([ends, state.cancelled]).toEqual([["left"], true]);
});

test("a signal that aborts, before or later, is a reader that left", async () => {
  const later = new AbortController();
  const one = watch(endless().source, later.signal);
  later.abort();
  const other = watch(endless().source, AbortSignal.abort());
  expect([one.ends, other.ends]).toEqual([["left"], ["left"]]);
});

test("a source may take its time", async () => {
  let say!: (text: string | null) => void;
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      say = (text) => (text === null ? controller.close() : controller.enqueue(bytes(text)));
    },
  });
  const { ends, body } = watch(source);
  const text = new Response(body).text();
  await Bun.sleep(20);
  say("late");
  await Bun.sleep(20);
  say(null);
  expect(await text).toBe(": open\n\nlate");
  expect(ends).toEqual(["taken"]);
});
