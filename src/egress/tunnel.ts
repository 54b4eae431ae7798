import { type Channel, pump } from "./channel.ts";
import { ClientHelloReader, mayBeClientHello } from "./client-hello.ts";
import { EgressError } from "./egress-error.ts";
import { inTime } from "./in-time.ts";

const TLS_PORT = 443;
/** What a TLS client that was refused is told (RFC 8446, section 6): a fatal alert, access_denied */
export const TLS_REFUSAL = Uint8Array.of(21, 3, 3, 0, 2, 2, 49);

/** The name a tunnel was opened for, when the name is why it was allowed. */
export interface PromisedName {
  name: string;
  port: number;
  handshakeMs: number;
}

/**
 * Carries bytes both ways until both directions have ended; each may end alone. With a promised name, nothing of a TLS
 * client leaves before its ClientHello has shown that name. Rejects with what ended it early.
 */
export async function runTunnel(
  client: Channel,
  upstream: Channel,
  promised: PromisedName | null,
): Promise<void> {
  /** Until its name was checked */
  let isUnproven = promised !== null;
  const outward = async () => {
    if (promised) await checkServerName(client, promised);
    isUnproven = false;
    await pump(client, upstream);
  };
  const stop = (reason: unknown) => {
    upstream.destroy(reason);
    // Whoever is refused is told by the caller, over a client that is still whole.
    if (!isUnproven) client.destroy(reason);
  };
  const works = [outward(), pump(upstream, client)];
  for (const work of works) work.catch(stop);
  await Promise.all(works);
}

/** Leaves all bytes in the buffer. A protocol without TLS passes on ports other than 443. */
async function checkServerName(client: Channel, promised: PromisedName): Promise<void> {
  const { name, port, handshakeMs } = promised;
  if (port !== TLS_PORT && !(await startsTls(client))) return;
  const shown = await inTime(readServerName(client), handshakeMs, "the ClientHello");
  if (shown === undefined) return;
  if (shown === null)
    throw new EgressError("sni_missing", `the TLS client names no server, and only ${name} was allowed`);
  if (shown === name) return;
  throw new EgressError("sni_mismatch", `the TLS client names ${shown}, and only ${name} was allowed`);
}

async function startsTls(client: Channel): Promise<boolean> {
  if (client.buffered.byteLength === 0 && !(await client.fill())) return false;
  return mayBeClientHello(client.buffered);
}

/** Undefined when the client ended without a byte. */
async function readServerName(client: Channel): Promise<string | null | undefined> {
  const reader = new ClientHelloReader();
  for (let seen = 0; ; ) {
    const answer = reader.push(client.buffered.subarray(seen));
    seen = client.buffered.byteLength;
    if (answer.state === "hello") return answer.serverName;
    if (answer.state === "invalid") throw refusalOf(client.buffered, answer.why);
    if (await client.fill()) continue;
    if (seen === 0) return undefined;
    throw refusalOf(client.buffered, "it ends too early");
  }
}

function refusalOf(bytes: Uint8Array, why: string): EgressError {
  if (!mayBeClientHello(bytes))
    return new EgressError("not_tls", "on port 443 only TLS is carried to a name of the egress profile");
  return new EgressError("bad_client_hello", `the ClientHello cannot be read: ${why}`);
}
