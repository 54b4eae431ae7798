import {
  encodeCredit,
  FIRST_AGENT_STREAM,
  Message,
  TUNNEL_WINDOW_BYTES,
} from "../../../src/guest/agent-protocol.ts";
import { openTunnel } from "../../../src/guest/open-tunnel.ts";
import { serveTunnels, type TunnelHandler } from "../../../src/guest/serve-tunnels.ts";
import type { Tunnel } from "../../../src/guest/tunnel.ts";
import type { FakeAgentOptions } from "../../fake-vmm/fake-agent.ts";
import { ConnectedAgent } from "./connected-agent.ts";

const NEVER = new AbortController().signal;
/** `AgentClient` numbers its streams from 1 */
const FIRST_HOST_STREAM = 1;

/** The guest's end of one tunnel over a fake agent, and the host's. Disposing ends the connection. */
export class FakeTunnel implements Disposable {
  private constructor(
    readonly connected: ConnectedAgent,
    readonly tunnel: Tunnel,
    readonly stream: number,
    /** Settles with what the connection was lost for */
    readonly lost: Promise<Error>,
  ) {}

  static async open(options: FakeAgentOptions = {}): Promise<FakeTunnel> {
    const { promise: lost, resolve: onLost } = Promise.withResolvers<Error>();
    const connected = await ConnectedAgent.start(options, { onLost });
    const tunnel = await openTunnel(connected.client, 8080, NEVER);
    return new FakeTunnel(connected, tunnel, FIRST_HOST_STREAM, lost);
  }

  send(bytes: number | string, stream = this.stream): void {
    this.say(Message.DATA, typeof bytes === "number" ? new Uint8Array(bytes) : Buffer.from(bytes), stream);
  }

  say(type: number, payload?: Uint8Array, stream = this.stream): void {
    this.connected.agent.broadcast(type, stream, payload);
  }

  grant(bytes: number): void {
    this.say(Message.CREDIT, encodeCredit(bytes));
  }

  /** What the guest got on the tunnel, and the types of the frames that brought it */
  get received(): { bytes: number; text: string; types: number[] } {
    const frames = this.connected.agent.received.filter(
      ({ stream, type }) => stream === this.stream && type !== Message.OPEN,
    );
    const data = Buffer.concat(frames.filter(({ type }) => type === Message.DATA).map((f) => f.payload));
    return { bytes: data.byteLength, text: data.toString(), types: frames.map(({ type }) => type) };
  }

  [Symbol.dispose](): void {
    this.connected[Symbol.dispose]();
  }
}

/** A fake agent whose guest may connect, and what the host makes of it. */
export class FakeProxy implements Disposable {
  readonly serving = new AbortController();

  private constructor(
    readonly connected: ConnectedAgent,
    readonly lost: Promise<Error>,
  ) {}

  static async start(handler: TunnelHandler): Promise<FakeProxy> {
    const { promise: lost, resolve: onLost } = Promise.withResolvers<Error>();
    const guest = new FakeProxy(await ConnectedAgent.start({}, { onLost }), lost);
    await serveTunnels(guest.connected.client, handler, guest.serving.signal);
    return guest;
  }

  accept(index: number, payload = ""): void {
    const { agent } = this.connected;
    agent.broadcast(Message.ACCEPTED, FIRST_AGENT_STREAM + index);
    if (payload !== "") agent.broadcast(Message.DATA, FIRST_AGENT_STREAM + index, Buffer.from(payload));
  }

  /** Once this resolves the host has taken in all that was sent before, and its handlers have begun. */
  async settle(): Promise<void> {
    await pingThrough(this.connected);
  }

  /** Types of what came on a stream of the agent's */
  typesOn(index: number): number[] {
    return this.connected.agent.received
      .filter(({ stream }) => stream === FIRST_AGENT_STREAM + index)
      .map(({ type }) => type);
  }

  /** Bodies of LISTEN, in order */
  get listens(): object[] {
    return this.connected.agent
      .receivedOf(Message.LISTEN)
      .map(({ payload }) => JSON.parse(Buffer.from(payload).toString()));
  }

  [Symbol.dispose](): void {
    this.connected[Symbol.dispose]();
  }
}

/** The answer comes behind all that the agent sent before. */
export async function pingThrough({ client }: ConnectedAgent): Promise<void> {
  await client.request(Message.PING, {}, () => undefined, 60_000);
}

export const WINDOW = TUNNEL_WINDOW_BYTES;

export async function readAll(tunnel: Tunnel): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of tunnel.readable) parts.push(part);
  return Buffer.concat(parts);
}
