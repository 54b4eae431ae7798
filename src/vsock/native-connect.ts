import { getSystemErrorName } from "node:util";
import { connectionFailure, refusedBeforeConnect } from "./connection-failure.ts";
import type { ConnectFrames, ConnectOptions, Frame, FrameConnection } from "./frame-connection.ts";
import { END_CODES, type NativeAddon, RECORD, RECORD_WORDS } from "./native-addon.ts";
import { NativeConnection } from "./native-connection.ts";
import type { VsockError } from "./vsock-error.ts";

const DEFAULT_HIGH_WATER_BYTES = 8 * 1_048_576;

/** `ConnectFrames` over the addon. Throws when its I/O thread does not start. */
export function nativeConnect(addon: NativeAddon): ConnectFrames {
  const carrier = new NativeCarrier(addon);
  return async (options) => carrier.connect(options);
}

/** A connect attempt, and the connection it becomes. */
interface Route {
  path: string;
  opened(): void;
  failed(error: VsockError): void;
  connection: NativeConnection;
  isOpen: boolean;
}

class NativeCarrier {
  readonly #addon: NativeAddon;
  readonly #routes = new Map<number, Route>();

  constructor(addon: NativeAddon) {
    this.#addon = addon;
    const errno = addon.start((words, buffers) => this.#onReports(words, buffers));
    if (errno !== 0) throw new Error(`the addon's I/O thread did not start: ${getSystemErrorName(-errno)}`);
  }

  connect(options: ConnectOptions): Promise<FrameConnection> {
    const { path, port, deadlineMs, signal, handler } = options;
    const refusal = refusedBeforeConnect(path, signal);
    if (refusal !== null) throw refusal;
    const id = this.#addon.connect(
      path,
      port,
      deadlineMs,
      options.highWaterBytes ?? DEFAULT_HIGH_WATER_BYTES,
    );
    if (id < 0) throw connectionFailure("connect_failed", path, systemError(-id));
    const { promise, resolve, reject } = Promise.withResolvers<FrameConnection>();
    const connection = new NativeConnection(this.#addon, id, path, handler);
    const onAbort = () => {
      this.#addon.close(id);
      this.#routes.delete(id);
      reject(connectionFailure("aborted", path, signal?.reason));
    };
    const settle = () => signal?.removeEventListener("abort", onAbort);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#routes.set(id, {
      path,
      connection,
      isOpen: false,
      opened: () => {
        settle();
        resolve(connection);
        // Frames that came with the answer wait until the caller holds the connection.
        setImmediate(() => connection.start());
      },
      failed: (error) => {
        settle();
        reject(error);
      },
    });
    return promise;
  }

  /** One call for all that happened since the last; a connection's records lie side by side. */
  #onReports(words: Uint32Array, buffers: ArrayBuffer[]): void {
    let frames: Frame[] = [];
    for (let at = 0; at < words.length; at += RECORD_WORDS) {
      const id = words[at + 1]!;
      const kind = words[at]! & 0xff;
      if (kind === RECORD.frame) {
        frames.push(frameAt(words, at, buffers));
        const next = at + RECORD_WORDS;
        if (words[next + 1] === id && (words[next]! & 0xff) === RECORD.frame) continue;
        this.#routes.get(id)?.connection.onFrames(frames);
        frames = [];
      } else this.#onEvent(kind, id, words.subarray(at, at + RECORD_WORDS));
    }
  }

  #onEvent(kind: number, id: number, record: Uint32Array): void {
    const route = this.#routes.get(id);
    if (route === undefined) return;
    if (kind === RECORD.opened) {
      route.isOpen = true;
      route.opened();
    } else if (kind === RECORD.drained) {
      route.connection.onDrained();
    } else {
      this.#routes.delete(id);
      const error = endError(route.path, record);
      if (route.isOpen) route.connection.onEnded(error);
      else route.failed(error);
    }
  }
}

function frameAt(words: Uint32Array, at: number, buffers: ArrayBuffer[]): Frame {
  return {
    type: words[at]! >>> 8,
    stream: words[at + 2]!,
    payload: new Uint8Array(buffers[words[at + 3]!]!, words[at + 4]!, words[at + 5]!),
  };
}

function endError(path: string, record: Uint32Array): VsockError {
  const [word, , errno, detail] = record as unknown as [number, number, number, number];
  const code = END_CODES[word >>> 8];
  if (code === null || code === undefined) throw new RangeError(`unknown end ${word >>> 8} from the addon`);
  return connectionFailure(code, path, errno === 0 ? endCause(code, detail) : systemError(errno));
}

function endCause(code: string, detail: number): Error | undefined {
  if (code === "frame_invalid") return new RangeError(`frame length ${detail}`);
  if (code !== "connection_lost") return undefined;
  return new Error(detail === 1 ? "the stream ended inside a frame" : "the stream ended");
}

function systemError(errno: number): Error {
  return new Error(getSystemErrorName(-errno));
}
