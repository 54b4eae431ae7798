import { ok } from "node:assert/strict";
import { AgentClient } from "../../src/guest/agent-client.ts";
import { AgentError } from "../../src/guest/agent-error.ts";
import { Message, TUNNEL_WINDOW_BYTES } from "../../src/guest/agent-protocol.ts";
import { capturedText } from "../../src/guest/captured-text.ts";
import { openTunnel } from "../../src/guest/open-tunnel.ts";
import { startRun } from "../../src/guest/run-handle.ts";
import { serveTunnels } from "../../src/guest/serve-tunnels.ts";
import { getFile, putFile } from "../../src/guest/transfer-file.ts";
import type { Tunnel } from "../../src/guest/tunnel.ts";
import { FrameDecoder } from "../../src/vsock/frame-codec.ts";
import type { ConnectOptions, FrameConnection, FrameHandler } from "../../src/vsock/frame-connection.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

const NEVER = new AbortController().signal;
const LIMIT_BYTES = 1000;

/**
 * An agent that says anything at all while a request, a run, a PUT, a GET and tunnels both ways wait for it. All of them end with the
 * connection, and what they took of it is within what was asked for.
 */
export const agent: FuzzTarget = {
  name: "agent",
  corpusPath: "corpus/agent",
  words: [
    '{"code":"no_space","errno":null,"message":""}',
    "\x80",
    "\x91",
    "\x95",
    "\xff",
    "null",
    '"stdout_bytes":',
    "1e15",
    "-1",
    "\x01\0\0\0",
    "\x02\0\0\0",
    "\x03\0\0\0",
    "\x05\0\0\0",
    "\x06\0\0\0",
    "\0\0\0\x80",
    "\x96",
    "\x22",
  ],
  tries: 10_000,
  async check(bytes) {
    const line = new FedConnection();
    const failures: string[] = [];
    const client = await connected(line);
    const run = startRun(client, { ...RUN, stdin: new Uint8Array(2_000_000) }, NEVER, 60_000);
    const works = [
      client.request(Message.PING, {}, () => undefined, 60_000),
      run.ended.then(({ stdout, stderr }) => {
        for (const stream of [stdout, stderr]) {
          ok(
            stream.head.byteLength + stream.tail.byteLength <= LIMIT_BYTES,
            "more output than was asked for",
          );
          capturedText(stream);
        }
      }),
      putFile(client, "/f", new Uint8Array(1_500_000), NEVER),
      getFile(client, "/f", { offset: 0, bytes: null, limitBytes: LIMIT_BYTES }, NEVER).then(({ content }) =>
        ok(content.byteLength <= LIMIT_BYTES, "more of a file than was asked for"),
      ),
      serveTunnels(client, (tunnel) => echo(tunnel, failures), NEVER),
      openTunnel(client, 80, NEVER, 60_000).then((tunnel) => echo(tunnel, failures)),
    ];
    const outcomes = Promise.allSettled(works);
    const frames = new FrameDecoder().push(bytes);
    if (frames.length > 0 && !line.isClosed) line.handler.onFrames(frames);
    if (!line.isClosed) line.handler.onClose(new Error("the end"));
    for (const outcome of await outcomes) {
      if (outcome.status === "rejected") ok(outcome.reason instanceof AgentError, String(outcome.reason));
    }
    ok(failures.length === 0, failures.join("; "));
  },
};

/** Sends back what comes; `failures` has what should not be. */
async function echo(tunnel: Tunnel, failures: string[]): Promise<void> {
  const writer = tunnel.writable.getWriter();
  try {
    for await (const bytes of tunnel.readable) {
      if (bytes.byteLength === 0 || bytes.byteLength > TUNNEL_WINDOW_BYTES)
        failures.push(`a tunnel brought ${bytes.byteLength} bytes at once`);
      // Not waited for: nobody grants.
      writer.write(bytes).catch(() => undefined);
    }
  } catch (error) {
    if (!(error instanceof AgentError)) failures.push(String(error));
  }
  await writer.close().catch(() => undefined);
}

const RUN = {
  command: new Uint8Array([0x3a]),
  cwd: null,
  timeoutMs: 60_000,
  maxOutputBytes: LIMIT_BYTES,
  reportMs: 50,
};

/** A connection that takes everything and brings what the test hands to its handler. */
class FedConnection implements FrameConnection {
  handler!: FrameHandler;
  isClosed = false;
  readonly pendingBytes = 0;
  /** The nonce of the HELLO that was sent */
  nonce = "";

  send(type: number, _stream: number, payload?: Uint8Array): boolean {
    if (type === Message.HELLO) this.nonce = JSON.parse(Buffer.from(payload!).toString()).nonce;
    return true;
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.isClosed = true;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

async function connected(line: FedConnection): Promise<AgentClient> {
  const connect = async ({ handler }: ConnectOptions) => {
    line.handler = handler;
    return line;
  };
  const connecting = AgentClient.connect({ path: "/fed", deadlineMs: 60_000, connect });
  while (line.nonce === "") await Promise.resolve();
  const hello = { protocol: 1, nonce: line.nonce, build: "b", kernel: "k", features: "tcp" };
  line.handler.onFrames([{ type: Message.OK, stream: 0, payload: Buffer.from(JSON.stringify(hello)) }]);
  return await connecting;
}
