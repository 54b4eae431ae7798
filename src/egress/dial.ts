import { connect, type Socket } from "node:net";
import type { Connection } from "./channel.ts";

/** Opens a TCP connection to an address (never a name), or rejects. The signal counts until it is open. */
export type Dial = (address: string, port: number, signal: AbortSignal) => Promise<Connection>;

/** Read ahead of what the guest takes */
const READ_AHEAD_BYTES = 65_536;

export const dialTcp: Dial = async (address, port, signal) => {
  signal.throwIfAborted();
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  const connection = streamsOf(socket);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => {
    socket.destroy();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("connect", resolve);
  socket.once("error", reject);
  try {
    await promise;
    return connection;
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.removeListener("error", reject);
  }
};

/** The socket as web streams: what is read waits for what is taken, and each direction ends alone. */
export function streamsOf(socket: Socket): Connection {
  return { readable: readableOf(socket), writable: writableOf(socket) };
}

function readableOf(socket: Socket): ReadableStream<Uint8Array> {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const finish = (act: () => void) => {
          if (isOver) return;
          isOver = true;
          act();
        };
        socket.on("data", (chunk: Uint8Array) => {
          if (isOver) return;
          controller.enqueue(chunk);
          if ((controller.desiredSize ?? 0) <= 0) socket.pause();
        });
        socket.on("end", () => finish(() => controller.close()));
        socket.on("error", (error) => finish(() => controller.error(error)));
        socket.on("close", () => finish(() => controller.error(new Error("the connection was closed"))));
      },
      pull() {
        socket.resume();
      },
      cancel() {
        isOver = true;
        socket.destroy();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }),
  );
}

function writableOf(socket: Socket): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      socket.on("error", (error) => controller.error(error));
      socket.on("close", () => controller.error(new Error("the connection was closed")));
    },
    write(chunk) {
      if (socket.write(chunk)) return;
      return new Promise((resolve) => {
        const settle = () => {
          socket.removeListener("drain", settle);
          socket.removeListener("close", settle);
          resolve();
        };
        socket.once("drain", settle);
        socket.once("close", settle);
      });
    },
    close() {
      socket.end();
    },
    abort() {
      socket.destroy();
    },
  });
}
