/**
 * The other end of bench/carrier.ts, in a process of its own: `bun carrier-peer.ts <socket path>`.
 * A connection's first frame says what it does: type 1 echoes everything, type 2 sends frames with as many
 * payload bytes as its stream number says until the end, type 3 swallows everything.
 */
import { encodeFrame, FrameDecoder } from "../src/vsock/frame-codec.ts";

const REPEATED_BYTES = 1_048_576;

interface Peer {
  decoder: FrameDecoder | null;
  mode: number;
  /** What is sent over and over, and how far */
  block: Uint8Array;
  sentBytes: number;
}

function pushOn(socket: Bun.Socket<Peer>): void {
  const peer = socket.data;
  while (peer.mode === 2) {
    const written = socket.write(peer.block.subarray(peer.sentBytes));
    if (written <= 0) return;
    peer.sentBytes = (peer.sentBytes + written) % peer.block.byteLength;
  }
}

function begin(socket: Bun.Socket<Peer>, bytes: Uint8Array): void {
  const end = bytes.indexOf(0x0a);
  socket.data = { decoder: new FrameDecoder(), mode: 0, block: new Uint8Array(0), sentBytes: 0 };
  socket.write("OK 1\n");
  if (end >= 0 && end + 1 < bytes.byteLength) take(socket, bytes.subarray(end + 1));
}

function take(socket: Bun.Socket<Peer>, bytes: Uint8Array): void {
  const peer = socket.data;
  if (peer.mode === 3) return;
  for (const frame of peer.decoder?.push(bytes) ?? []) {
    if (peer.mode === 0) {
      peer.mode = frame.type;
      const once = encodeFrame({ type: 2, stream: 1, payload: new Uint8Array(frame.stream) });
      const copies = Math.max(1, Math.floor(REPEATED_BYTES / once.byteLength));
      peer.block = Buffer.concat(Array.from({ length: copies }, () => once));
      pushOn(socket);
    }
    if (peer.mode === 1) socket.write(encodeFrame(frame));
  }
}

Bun.listen<Peer>({
  unix: process.argv[2]!,
  socket: {
    data: (socket, bytes) => (socket.data === undefined ? begin(socket, bytes) : take(socket, bytes)),
    drain: (socket) => pushOn(socket),
  },
});
console.log("ready");
