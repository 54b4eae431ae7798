import { connect, type Socket } from "node:net";
import type { Connection } from "./channel.ts";
import { ReadRoom } from "./read-room.ts";

/** Opens a TCP connection to an address (never a name), or rejects. The signal counts until it is open. */
export type Dial = (
  address: string,
  port: number,
  signal: AbortSignal,
  room?: ReadRoom,
) => Promise<Connection>;

export const dialTcp: Dial = async (address, port, signal, room) => {
  signal.throwIfAborted();
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  const connection = streamsOf(socket, room);
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

/**
 * The socket as web streams. It is read when it is asked, each direction ends alone, and closing `writable` settles when
 * the last byte has left. `abort` ends both whatever waits: a stream that has ended or is stuck in a write would not.
 */
export function streamsOf(socket: Socket, room = new ReadRoom(1)): Connection {
  return {
    readable: readableOf(socket, room),
    writable: writableOf(socket),
    abort: () => socket.destroy(),
  };
}

function readableOf(socket: Socket, room: ReadRoom): ReadableStream<Uint8Array> {
  let isOver = false;
  let heldBytes = 0;
  const releaseHeld = () => {
    room.release(heldBytes);
    heldBytes = 0;
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const finish = (act: () => void) => {
          if (isOver) return;
          isOver = true;
          act();
        };
        socket.pause();
        socket.on("data", (chunk: Uint8Array) => {
          if (isOver) return;
          heldBytes += chunk.byteLength;
          room.hold(socket, chunk.byteLength);
          controller.enqueue(chunk);
        });
        socket.on("end", () => finish(() => controller.close()));
        socket.on("error", (error) => finish(() => controller.error(error)));
        socket.on("close", () => {
          room.forget(socket);
          releaseHeld();
          finish(() => controller.error(new Error("the connection was closed")));
        });
      },
      /** Whoever asks for more is done with what it had. */
      pull() {
        releaseHeld();
        room.want(socket);
      },
      cancel() {
        isOver = true;
        socket.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

function writableOf(socket: Socket): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      socket.on("error", (error) => controller.error(error));
      socket.on("close", () => controller.error(new Error("the connection was closed")));
    },
    write(chunk) {
      if (!socket.write(chunk)) return eitherOf(socket, "drain");
    },
    close() {
      const finished = eitherOf(socket, "finish");
      socket.end();
      return finished;
    },
    abort() {
      socket.destroy();
    },
  });
}

/** Resolves at the event, or when the socket is gone. */
function eitherOf(socket: Socket, event: "drain" | "finish"): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = () => {
      socket.removeListener(event, settle);
      socket.removeListener("close", settle);
      resolve();
    };
    socket.once(event, settle);
    socket.once("close", settle);
  });
}
