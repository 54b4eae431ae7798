import type {
  ConnectFrames,
  Frame,
  FrameConnection,
  FrameHandler,
} from "../../../src/vsock/frame-connection.ts";
import { loadNative } from "../../../src/vsock/load-native.ts";
import { nativeConnect } from "../../../src/vsock/native-connect.ts";
import { connectTwin } from "../../../src/vsock/twin-connect.ts";
import type { FakePeer, PeerConnection } from "./fake-peer.ts";

function loadNativeOrFail(): ConnectFrames {
  const failures: unknown[] = [];
  const loaded = loadNative((_origin, cause) => failures.push(cause));
  if (loaded === null) throw new AggregateError(failures, "run scripts/build-native before these tests");
  return nativeConnect(loaded.addon);
}

/** Both implementations of the one contract. */
export const carriers: [string, ConnectFrames][] = [
  ["native", loadNativeOrFail()],
  ["twin", connectTwin],
];

/** Keeps what a connection reports, in order. */
export class Recorder implements FrameHandler {
  readonly frames: Frame[] = [];
  readonly ends: (Error | null)[] = [];
  drains = 0;
  payloadBytes = 0;
  callsAfterEnd = 0;

  onFrames(frames: Frame[]): void {
    if (this.ends.length > 0) this.callsAfterEnd++;
    this.frames.push(...frames);
    for (const frame of frames) this.payloadBytes += frame.payload.byteLength;
  }

  onDrain(): void {
    if (this.ends.length > 0) this.callsAfterEnd++;
    this.drains++;
  }

  onClose(error: Error | null): void {
    this.ends.push(error);
  }
}

export interface OpenPair {
  connection: FrameConnection;
  recorder: Recorder;
  peer: PeerConnection;
}

/** Connects to the fake peer with generous limits. */
export async function openPair(
  connect: ConnectFrames,
  fake: FakePeer,
  options: { highWaterBytes?: number; signal?: AbortSignal } = {},
): Promise<OpenPair> {
  const recorder = new Recorder();
  const connection = await connect({
    path: fake.path,
    port: 7000,
    deadlineMs: 10_000,
    handler: recorder,
    ...options,
  });
  return { connection, recorder, peer: fake.connections.at(-1)! };
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the promise did not reject");
}

/** Bytes that differ from place to place, the same for the same seed. */
export function patterned(sizeBytes: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  for (let at = 0; at < sizeBytes; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}
