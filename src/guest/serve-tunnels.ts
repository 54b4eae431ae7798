import type { AgentClient } from "./agent-client.ts";
import { decodeDone, MAX_TUNNELS, Message } from "./agent-protocol.ts";
import { AgentTunnel } from "./agent-tunnel.ts";
import { requireTunnels } from "./open-tunnel.ts";
import type { AcceptStream } from "./stream-table.ts";
import type { Tunnel } from "./tunnel.ts";

const LISTEN_DEADLINE_MS = 10_000;
/** Queued bytes beyond which a guest that opens tunnels is one that takes nothing */
const MOST_PENDING_BYTES = 64 * 1_048_576;
/** More than programs ask for; what comes faster is reset, so that it costs the host next to nothing */
const MOST_IN_A_SECOND = 4096;

/** Gets each connection of the guest. One that throws or rejects has its tunnel reset with that reason. */
export type TunnelHandler = (tunnel: Tunnel) => void | Promise<void>;

/**
 * Makes the agent listen on 127.0.0.1:3128 in the guest and hands over what it accepts; resolves once it listens. When
 * `signal` aborts it listens no more, and tunnels that are open go on. Told again, the new handler gets what comes next.
 */
export async function serveTunnels(
  client: AgentClient,
  handler: TunnelHandler,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  requireTunnels(client);
  let openTunnels = 0;
  let busyHandlers = 0;
  const counted: TunnelHandler = async (tunnel) => {
    busyHandlers++;
    try {
      await handler(tunnel);
    } finally {
      busyHandlers--;
    }
  };
  const mayOpen = atMostInASecond(MOST_IN_A_SECOND);
  const accept: AcceptStream = (stream) => {
    if (client.pendingBytes > MOST_PENDING_BYTES)
      throw new RangeError("the guest opens tunnels and takes nothing");
    // A guest may open and reset tunnels faster than their handlers notice.
    if (signal.aborted || busyHandlers >= MAX_TUNNELS || !mayOpen()) {
      client.send(Message.CANCEL, stream);
      return null;
    }
    if (++openTunnels > MAX_TUNNELS) throw new RangeError(`more than ${MAX_TUNNELS} tunnels`);
    const tunnel = new AgentTunnel(client, stream, () => openTunnels--);
    void handle(tunnel, counted);
    return tunnel;
  };
  client.acceptStreams(accept);
  const stop = () => {
    if (client.acceptsWith(accept)) listen(client, false).catch(() => undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  await listen(client, true, signal);
}

function atMostInASecond(limit: number): () => boolean {
  let [since, count] = [0, 0];
  return () => {
    const now = performance.now();
    if (now - since >= 1000) [since, count] = [now, 0];
    return ++count <= limit;
  };
}

async function listen(client: AgentClient, on: boolean, signal?: AbortSignal): Promise<void> {
  await client.request(Message.LISTEN, { on }, decodeDone, LISTEN_DEADLINE_MS, signal);
}

async function handle(tunnel: AgentTunnel, handler: TunnelHandler): Promise<void> {
  try {
    // Not before the tunnel's stream is known.
    await Promise.resolve();
    if (!tunnel.isOver) await handler(tunnel);
  } catch (error) {
    tunnel.abort(error instanceof Error ? error : new Error(String(error)));
  }
}
