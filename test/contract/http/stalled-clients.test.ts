import { expect, test } from "bun:test";
import { connect } from "node:net";
import { HttpListener } from "../../../src/mcp/http-listener.ts";
import { type StreamEnd, watchStream } from "../../../src/mcp/watch-stream.ts";

const MIB = 1_048_576;
/** More than the kernel takes for a client that does not read */
const TOO_MUCH = 32 * MIB;
/** Two rounds of the timer Bun counts connections' silence with: of one, the time since the last byte is not seen */
const IDLE_S = 5;
const PIECE_MS = 200;

/** A listener that answers with a stream that never ends, says something now and then, and begins with `sizeBytes`. */
async function startStreaming(sizeBytes: number) {
  const { promise: ended, resolve } = Promise.withResolvers<StreamEnd>();
  let timer: Timer;
  const listener = await HttpListener.open({
    address: { host: "127.0.0.1", port: 0 },
    tls: null,
    idleS: IDLE_S,
    async fetch({ signal }) {
      const source = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new Uint8Array(sizeBytes));
          timer = setInterval(() => controller.enqueue(new Uint8Array(1)), PIECE_MS);
        },
        cancel: () => clearInterval(timer),
      });
      return new Response(watchStream(source, { signal, onEnd: resolve }));
    },
  });
  const { port } = listener.address as { port: number };
  const socket = connect(port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return { listener, socket, ended };
}

test("a client that takes nothing of its stream is cut off, and the stream's source let go", async () => {
  const { listener, socket, ended } = await startStreaming(TOO_MUCH);
  socket.pause();
  expect(await ended).toBe("left");
  socket.destroy();
  await listener.close();
});

test("a client that takes what comes is not", async () => {
  const { listener, socket, ended } = await startStreaming(1);
  let pieces = 0;
  const { promise: outlasted, resolve } = Promise.withResolvers<string>();
  socket.on("data", () => {
    pieces += 1;
    if (pieces * PIECE_MS > 2 * IDLE_S * 1000) resolve("outlasted its limit");
  });
  expect(await Promise.race([ended, outlasted])).toBe("outlasted its limit");
  socket.destroy();
  expect(await ended).toBe("left");
  await listener.close();
});
