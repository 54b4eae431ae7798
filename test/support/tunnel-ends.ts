import type { TunnelHandler } from "../../src/guest/serve-tunnels.ts";
import type { Tunnel } from "../../src/guest/tunnel.ts";

export const echo: TunnelHandler = (tunnel) => tunnel.readable.pipeTo(tunnel.writable);

/** All up to the end of that direction */
export async function readAll(tunnel: Tunnel): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of tunnel.readable) parts.push(part);
  return Buffer.concat(parts);
}

/** Sends it and ends the direction. */
export async function sendAll(tunnel: Tunnel, bytes: Uint8Array | string): Promise<void> {
  const writer = tunnel.writable.getWriter();
  await writer.write(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  await writer.close();
}
