const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]\s/@]+)(?::\d{1,5})?$/;

/** Names under which a page in this machine's browser reaches what listens on loopback. */
export const LOCAL_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** The name in a Host header, in lower case and without the port; null when it cannot be one. RFC 9110, section 7.2. */
export function hostNameIn(header: string): string | null {
  return HOST.exec(header.toLowerCase())?.[1] ?? null;
}
