import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import { encodeJson, Message, TUNNEL_FEATURE } from "./agent-protocol.ts";
import { AgentTunnel } from "./agent-tunnel.ts";
import type { Tunnel } from "./tunnel.ts";

/** The agent gives up after 10 s itself */
const OPEN_DEADLINE_MS = 30_000;

/**
 * Connects to 127.0.0.1:`port` in the guest. Rejects with `AgentError`: `refusal` is `connect_failed` with the `errno`
 * when nobody listens there, `too_many_tunnels` beyond `MAX_TUNNELS`.
 */
export async function openTunnel(
  client: AgentClient,
  port: number,
  signal: AbortSignal,
  deadlineMs = OPEN_DEADLINE_MS,
): Promise<Tunnel> {
  signal.throwIfAborted();
  requireTunnels(client);
  const { promise: opened, resolve, reject } = Promise.withResolvers<Tunnel>();
  let tunnel: AgentTunnel | null = null;
  const stream = client.openStream({
    onFrame: (frame) => {
      if (tunnel) tunnel.onFrame(frame);
      else if (frame.type !== Message.OK) throw new RangeError(`type ${frame.type} does not answer OPEN`);
      else {
        tunnel = new AgentTunnel(client, stream);
        resolve(tunnel);
      }
    },
    onError: (error) => (tunnel ? tunnel.onError(error) : reject(error)),
  });
  client.send(Message.OPEN, stream, encodeJson({ port }));
  try {
    return await client.time.within(opened, deadlineMs, "a connection in the guest", signal);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    client.endStream(stream);
    client.send(Message.CANCEL, stream);
    throw new AgentError(signal.aborted ? "aborted" : "agent_silent", "the connection was given up", {
      cause: error,
    });
  }
}

/** Throws `agent_mismatch` for an agent from before there were tunnels. */
export function requireTunnels({ hello }: AgentClient): void {
  if (hello.features.split(" ").includes(TUNNEL_FEATURE)) return;
  throw new AgentError(
    "agent_mismatch",
    "the agent in the guest carries no tunnels; rebuild the image and the base",
  );
}
