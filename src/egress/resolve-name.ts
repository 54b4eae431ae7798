import { lookup, Resolver } from "node:dns/promises";

/** All addresses of a name, in notation; an empty list or a rejection when there is none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

const ATTEMPT_MS = 3000;
const ATTEMPTS = 2;

/**
 * Asks the given servers (`ip` or `ip:port`), or as the machine does when there is none. IPv4 comes first: a machine
 * without IPv6 often resolves to it all the same.
 */
export function nameResolver(servers: readonly string[]): ResolveName {
  return async (name, signal) => {
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const found = servers.length === 0 ? resolveAsMachine(name) : resolveAt(servers, name);
      return await Promise.race([found, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  };
}

async function resolveAsMachine(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
}

async function resolveAt(servers: readonly string[], name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  resolver.setServers([...servers]);
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  if (v4.status === "rejected" && v6.status === "rejected") throw v4.reason;
  return [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}
