import type { Channel } from "./channel.ts";
import { ChunkedDecoder } from "./chunked-decoder.ts";
import { type BodyFraming, badRequest } from "./http-head.ts";

/** Takes a request's body from the client, and hands it over as it comes, without its chunks. */
export async function readBody(
  client: Channel,
  framing: BodyFraming,
  write: (piece: Uint8Array) => Promise<void> | void,
): Promise<void> {
  if (framing.kind === "chunked") await readChunks(client, write);
  else await readCounted(client, framing.bytes, write);
}

async function readCounted(
  client: Channel,
  bytes: number,
  write: (piece: Uint8Array) => Promise<void> | void,
): Promise<void> {
  for (let left = bytes; left > 0; ) {
    await waitForMore(client);
    const piece = client.take(left);
    left -= piece.byteLength;
    await write(piece);
  }
}

async function readChunks(
  client: Channel,
  write: (piece: Uint8Array) => Promise<void> | void,
): Promise<void> {
  const decoder = new ChunkedDecoder();
  while (!decoder.isDone) {
    await waitForMore(client);
    const { data, length } = decoder.push(client.buffered);
    client.take(length);
    if (data.length > 0) await write(Buffer.concat(data));
  }
}

async function waitForMore(client: Channel): Promise<void> {
  if (client.buffered.byteLength === 0 && !(await client.fill())) throw badRequest("it ends in its body");
}
