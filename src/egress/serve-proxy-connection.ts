import { within } from "../base/wait.ts";
import { Channel, type Connection } from "./channel.ts";
import { type Destination, isInternal } from "./destination.ts";
import { EgressError } from "./egress-error.ts";
import type { EgressGate, Upstream } from "./egress-gate.ts";
import { HTTP_CONNECTED, httpRefusal } from "./http-answers.ts";
import { HttpRelay, readHead } from "./http-relay.ts";
import { readConnectTarget } from "./http-request.ts";
import { IdleTimer } from "./idle-timer.ts";
import { inTime } from "./in-time.ts";
import { Passage } from "./passage.ts";
import {
  CONNECTED_REPLY,
  METHOD_CHOSEN,
  readConnect,
  readGreeting,
  refusalReply,
  SOCKS_VERSION,
  type SocksAnswer,
} from "./socks5.ts";
import { runTunnel, TLS_REFUSAL } from "./tunnel.ts";

const HTTP_PORT = 80;
const TLS_RECORD = 22;
/** How long a guest may take to read the last of it and to end, in `ms`, and how much it may still send */
const FAREWELL_MS = 5000;
const FAREWELL_BYTES = 262_144;

type Refuse = (error: EgressError) => Uint8Array | null;

/**
 * Serves one connection of a guest to its proxy: SOCKS5 when it starts with 5, else HTTP. Resolves when it is over, and
 * never rejects: whatever goes wrong ends the connection, and before anything was carried also refuses it.
 */
export async function serveProxyConnection(connection: Connection, gate: EgressGate): Promise<void> {
  const client = new Channel(connection);
  const passage = new Passage(gate, client);
  const isFull = gate.counters.open >= gate.limits.connections;
  using place = gate.signal.aborted || isFull ? null : gate.shared.connections.take();
  if (!place) {
    const error =
      gate.signal.reason ?? new EgressError("too_many_connections", "too many connections at once");
    client.destroy(error);
    return passage.end(error);
  }
  gate.counters.open++;
  using idle = new IdleTimer(gate.limits.idleMs, () =>
    client.destroy(new EgressError("idle_timeout", "nothing was carried for too long")),
  );
  const countBytes = gate.counters.byteCountOf(client);
  client.onActivity = () => {
    idle.touch();
    countBytes();
  };
  const onEnd = () => client.destroy(gate.signal.reason);
  gate.signal.addEventListener("abort", onEnd);
  try {
    await new ProxyConnection(client, gate, passage).serve();
  } finally {
    gate.signal.removeEventListener("abort", onEnd);
    client.destroy(new EgressError("ended", "the connection is over"));
    gate.counters.open--;
  }
}

class ProxyConnection {
  readonly #client: Channel;
  readonly #gate: EgressGate;
  readonly #passage: Passage;
  /** How the guest is told of a refusal, at this point of its protocol; null when it cannot be told */
  #refuse: Refuse = () => null;

  constructor(client: Channel, gate: EgressGate, passage: Passage) {
    this.#client = client;
    this.#gate = gate;
    this.#passage = passage;
  }

  async serve(): Promise<void> {
    let failure: unknown;
    try {
      if (!(await this.#within(this.#client.fill()))) return;
      if (this.#client.buffered[0] === SOCKS_VERSION) await this.#serveSocks();
      else await this.#serveHttp();
    } catch (error) {
      failure = error;
    }
    this.#passage.end(failure);
    // A guest that does not wait for its last bytes does without them.
    const farewell = failure === undefined ? this.#client.drain(FAREWELL_BYTES) : this.#sayFarewell(failure);
    await within(farewell, FAREWELL_MS, "the guest to end").catch(() => undefined);
  }

  async #serveSocks(): Promise<void> {
    this.#refuse = () => null;
    await this.#within(this.#readSocks(readGreeting));
    await this.#client.write(METHOD_CHOSEN);
    this.#refuse = ({ code }) => refusalReply(code);
    const destination = await this.#within(this.#readSocks(readConnect));
    await this.#tunnel(destination, CONNECTED_REPLY);
  }

  async #readSocks<Value>(read: (bytes: Uint8Array) => SocksAnswer<Value>): Promise<Value> {
    for (;;) {
      const answer = read(this.#client.buffered);
      if (answer.state === "ok") {
        this.#client.take(answer.length);
        return answer.value;
      }
      if (answer.state === "invalid") {
        this.#refuse = () => answer.reply;
        throw new EgressError("bad_request", answer.why);
      }
      if (!(await this.#client.fill()))
        throw new EgressError("bad_request", "the SOCKS client ended too early");
    }
  }

  async #serveHttp(): Promise<void> {
    this.#refuse = httpRefusal;
    const head = await readHead(this.#client, this.#gate.limits.handshakeMs);
    if (head?.method === "CONNECT") await this.#tunnel(readConnectTarget(head), HTTP_CONNECTED);
    else if (head) await this.#relay(new HttpRelay(this.#client, this.#gate, this.#passage), head);
  }

  async #tunnel(destination: Destination, accepted: Uint8Array): Promise<void> {
    this.#passage.goesTo(destination);
    if (isInternal(destination)) {
      await this.#client.write(accepted);
      return await this.#relay(
        new HttpRelay(this.#client, this.#gate, this.#passage, { to: destination }),
        null,
      );
    }
    const { channel, grounds } = await this.#gate.open(destination);
    this.#client.accompany(channel);
    try {
      this.#passage.allow(grounds);
      this.#refuse = () => null;
      await this.#client.write(accepted);
      await this.#carry(destination, { channel, grounds });
    } finally {
      channel.destroy(new EgressError("ended", "the connection is over"));
    }
  }

  async #carry(destination: Destination, { channel, grounds }: Upstream): Promise<void> {
    const { name, port } = destination;
    if (grounds === "name" && port === HTTP_PORT) {
      const relay = new HttpRelay(this.#client, this.#gate, this.#passage, { to: destination, channel });
      return await this.#relay(relay, null);
    }
    if (grounds !== "name") return await runTunnel(this.#client, channel, null);
    this.#refuse = () => (this.#client.buffered[0] === TLS_RECORD ? TLS_REFUSAL : null);
    await runTunnel(this.#client, channel, { name: name!, port, handshakeMs: this.#gate.limits.handshakeMs });
  }

  async #relay(relay: HttpRelay, first: Parameters<HttpRelay["run"]>[0]): Promise<void> {
    this.#refuse = (error) => (relay.isAnswering ? null : httpRefusal(error));
    await relay.run(first);
  }

  async #within<T>(reading: Promise<T>): Promise<T> {
    return await inTime(reading, this.#gate.limits.handshakeMs, "the request");
  }

  /** Tells the guest why. What it still sends is taken until it ends too: an end from here could overtake the reason. */
  async #sayFarewell(failure: unknown): Promise<void> {
    const error =
      failure instanceof EgressError ? failure : new EgressError("internal_error", "the proxy has failed");
    const reason = this.#refuse(error);
    if (!reason) return;
    await this.#client.write(reason);
    await this.#client.end();
    await this.#client.drain(FAREWELL_BYTES);
  }
}
