import { isAbsolute } from "node:path";

/** Longest path that fits sun_path of macOS, the shorter one, with its final NUL */
const MAX_SOCKET_PATH_BYTES = 103;
const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/;
const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]*)):(\d{1,5})$/i;

/** Where a server listens. */
export type ListenAddress = { unix: string } | { host: string; port: number };

/** `host:port`, `:port` for every address, `[v6]:port` or `unix:/path`; null for anything else. */
export function parseListenAddress(text: string): ListenAddress | null {
  if (text.startsWith("unix:")) {
    const unix = text.slice("unix:".length);
    return isAbsolute(unix) && Buffer.byteLength(unix) <= MAX_SOCKET_PATH_BYTES ? { unix } : null;
  }
  const match = HOST_AND_PORT.exec(text);
  if (!match) return null;
  const port = Number(match[3]);
  return port <= 65_535 ? { host: match[1] ?? (match[2] || "0.0.0.0"), port } : null;
}

/** Whether only processes of this machine can connect. */
export function isLocal(address: ListenAddress): boolean {
  return "unix" in address || LOOPBACK.test(address.host);
}

/** Of the server itself, without a path. A socket has no address of its own. */
export function baseUrlOf(address: ListenAddress): string {
  if ("unix" in address) return "http://localhost";
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `http://${host}:${address.port}`;
}
