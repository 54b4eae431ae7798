import { Resolver } from "node:dns/promises";
import { HostsFile } from "./hosts-file.ts";

/** All addresses of a name, in notation; an empty list or a rejection when there is none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

const ATTEMPT_MS = 3000;
const ATTEMPTS = 2;
const HOSTS_PATH = "/etc/hosts";

/**
 * Asks the given servers (`ip` or `ip:port`); without any, what /etc/hosts says and then the machine's servers. IPv4
 * comes first: a machine without IPv6 often resolves to it all the same. `dns.lookup` is not used: each of its names
 * takes a thread of the pool that all work on files needs too, for as long as a server does not answer.
 */
export function nameResolver(servers: readonly string[], hostsPath = HOSTS_PATH): ResolveName {
  if (servers.length > 0) return async (name, signal) => await ask(name, signal, servers);
  const hosts = new HostsFile(hostsPath);
  return async (name, signal) => {
    const known = await hosts.addressesOf(name);
    return known.length > 0 ? known : await ask(name, signal, []);
  };
}

/** A resolver for each question: a new one reads resolv.conf as it is now, and a question given up leaves nothing. */
async function ask(name: string, signal: AbortSignal, servers: readonly string[]): Promise<string[]> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  if (servers.length > 0) resolver.setServers([...servers]);
  const onAbort = () => resolver.cancel();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.throwIfAborted();
    if (v4.status === "rejected" && v6.status === "rejected") throw v4.reason;
    return [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
