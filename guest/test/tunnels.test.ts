import { expect, test } from "bun:test";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { AgentProcess, type } from "./agent-process.ts";
import { outcome, parse, run, startRun, uint32 } from "./agent-requests.ts";
import { GuestServer, guestClient, HostTunnel, readAll, tunnelWindowBytes } from "./agent-tunnel.ts";

const MOST_TUNNELS = 1024;
const WAIT_MS = 50_000;

function pattern(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, at) => at * 31 + (at >> 8)));
}

async function listen(agent: AgentProcess, on = true) {
  const stream = agent.newStream();
  agent.send(type.listen, stream, { on });
  return outcome(await agent.next(stream));
}

async function acceptedBy(agent: AgentProcess): Promise<HostTunnel> {
  return new HostTunnel(agent, await agent.accepted());
}

function descriptors(agent: AgentProcess): number {
  return readdirSync(`/proc/${agent.pid}/fd`).length;
}

async function untilDescriptors(agent: AgentProcess, wanted: number): Promise<void> {
  for (const deadline = Date.now() + WAIT_MS; descriptors(agent) !== wanted; await Bun.sleep(10))
    if (Date.now() > deadline) throw new Error(`the agent has ${descriptors(agent)}, not ${wanted}`);
}

async function connectError(port: number): Promise<string> {
  const socket = await guestClient(port).catch((error: NodeJS.ErrnoException) => error.code ?? "");
  return typeof socket === "string" ? socket : "";
}

test("a tunnel into the guest carries bytes both ways, and each end of a direction alone", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.echo();
  const before = descriptors(agent);
  const tunnel = await HostTunnel.open(agent, server.port);
  const bytes = pattern(1_048_576);
  const sending = tunnel.send(bytes).then(() => tunnel.end());
  await sending;
  expect((await tunnel.readToEnd()).equals(bytes)).toBe(true);
  await untilDescriptors(agent, before);
});

test("the guest may end first and still be answered", async () => {
  await using agent = await AgentProcess.open();
  const got: Promise<Buffer>[] = [];
  await using server = await GuestServer.start((socket) => {
    socket.end("all I have to say");
    got.push(readAll(socket));
  });
  const tunnel = await HostTunnel.open(agent, server.port);
  expect((await tunnel.readToEnd()).toString()).toBe("all I have to say");
  await tunnel.send(Buffer.from("heard"));
  tunnel.end();
  expect((await got[0]!).toString()).toBe("heard");
});

test("a port nobody listens on, and one that cannot be, are refused", async () => {
  await using agent = await AgentProcess.open();
  const refusal = async (body: object) => {
    const stream = agent.newStream();
    agent.send(type.open, stream, body);
    return parse(await agent.next(stream));
  };
  expect(await refusal({ port: agent.proxyPort })).toMatchObject({
    code: "connect_failed",
    errno: "ECONNREFUSED",
  });
  for (const port of [0, 65_536, "80", null])
    expect(await refusal({ port })).toMatchObject({ code: "bad_request" });
  agent.send(type.open, 0x8000_0000, { port: 80 });
  expect(parse(await agent.next(0x8000_0000))).toMatchObject({ code: "bad_request" });
});

test("a connection that breaks is told as such to the other side", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.start(() => undefined);
  const before = descriptors(agent);
  const broken = await HostTunnel.open(agent, server.port);
  await broken.send(Buffer.from("x"));
  while (server.sockets.length === 0) await Bun.sleep(1);
  server.sockets[0]!.resetAndDestroy();
  expect(await broken.failure()).toMatchObject({ code: "reset", errno: "ECONNRESET" });
  const cancelled = await HostTunnel.open(agent, server.port);
  while (server.sockets.length === 1) await Bun.sleep(1);
  const seen = once(server.sockets[1]!, "error").catch((error) => [error]);
  server.sockets[1]!.resume();
  cancelled.cancel();
  expect(((await seen)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET");
  await untilDescriptors(agent, before);
});

test("CANCEL behind EOF takes nothing away of what was sent", async () => {
  await using agent = await AgentProcess.open();
  const before = descriptors(agent);
  const received: Promise<Buffer>[] = [];
  await using server = await GuestServer.start((socket) => {
    // What the host does not want to hear any more, and more than any buffer holds.
    socket.write(pattern(4_000_000));
    setTimeout(() => received.push(readAll(socket).finally(() => socket.end())), 200);
  });
  const tunnel = await HostTunnel.open(agent, server.port);
  await tunnel.send(pattern(60_000));
  tunnel.end();
  tunnel.cancel();
  while (received.length === 0) await Bun.sleep(5);
  expect((await received[0]!).equals(pattern(60_000))).toBe(true);
  await untilDescriptors(agent, before);
});

test("neither side sends more than was granted", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.start((socket) => socket.write(pattern(1_000_000)));
  const stream = agent.newStream();
  agent.send(type.open, stream, { port: server.port });
  expect((await agent.next(stream)).type).toBe(type.ok);
  let bytes = 0;
  while (bytes < tunnelWindowBytes) bytes += (await agent.next(stream)).payload.length;
  await Bun.sleep(100);
  expect(bytes).toBe(tunnelWindowBytes);
  expect(agent.pendingFrames(stream)).toBeEmpty();
  agent.send(type.credit, stream, uint32(10));
  expect((await agent.next(stream)).payload.length).toBe(10);
  agent.send(type.credit, stream, uint32(tunnelWindowBytes + 1));
  expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
  const other = await HostTunnel.open(agent, server.port);
  agent.send(type.data, other.stream, Buffer.alloc(tunnelWindowBytes + 1));
  expect(await other.failure()).toMatchObject({ code: "credit_exceeded" });
});

test("a guest that does not read holds up its own tunnel only", async () => {
  await using agent = await AgentProcess.open();
  await using deaf = await GuestServer.start((socket) => socket.pause());
  await using server = await GuestServer.echo();
  const stuck = await HostTunnel.open(agent, deaf.port);
  let isDone = false;
  const sending = stuck.send(pattern(4_000_000)).then(() => {
    isDone = true;
  });
  const tunnel = await HostTunnel.open(agent, server.port);
  await tunnel.send(pattern(300_000));
  tunnel.end();
  expect((await tunnel.readToEnd()).length).toBe(300_000);
  expect(isDone).toBe(false);
  stuck.cancel();
  agent.send(type.open, stuck.stream, { port: agent.proxyPort });
  await sending;
});

test("LISTEN makes connections of the guest to streams of the agent's, until it is told to stop", async () => {
  await using agent = await AgentProcess.open();
  expect(await connectError(agent.proxyPort)).toBe("ECONNREFUSED");
  expect(await listen(agent)).toEqual({ ok: true, answer: { port: agent.proxyPort } });
  expect((await listen(agent)).ok).toBe(true);
  for (let at = 0; at < 3; at++) {
    const client = await guestClient(agent.proxyPort);
    const reading = readAll(client);
    const tunnel = await acceptedBy(agent);
    expect(tunnel.stream).toBe(0x8000_0000 + at);
    client.end(pattern(200_000));
    expect((await tunnel.readToEnd()).equals(pattern(200_000))).toBe(true);
    await tunnel.send(pattern(100_000));
    tunnel.end();
    expect((await reading).equals(pattern(100_000))).toBe(true);
  }
  expect((await listen(agent, false)).ok).toBe(true);
  expect(await connectError(agent.proxyPort)).toBe("ECONNREFUSED");
});

test("a port that is taken is refused with the reason, and may be asked for again", async () => {
  await using agent = await AgentProcess.open();
  const taker = Bun.listen({ hostname: "127.0.0.1", port: agent.proxyPort, socket: { data() {} } });
  expect((await listen(agent)).answer).toMatchObject({ code: "listen_failed", errno: "EADDRINUSE" });
  taker.stop(true);
  expect((await listen(agent)).ok).toBe(true);
});

test("runs that start while it listens have the proxy in their environment, others do not", async () => {
  await using agent = await AgentProcess.open();
  const proxies = async () => (await run(agent, "env | grep -i proxy | sort")).stdout.toString();
  expect(await proxies()).toBe("");
  await listen(agent);
  const url = `127.0.0.1:${agent.proxyPort}`;
  const names = (value: (name: string) => string) =>
    [
      "ALL_PROXY",
      "HTTPS_PROXY",
      "HTTP_PROXY",
      "NODE_USE_ENV_PROXY",
      "NO_PROXY",
      "all_proxy",
      "http_proxy",
      "https_proxy",
      "no_proxy",
    ]
      .map((name) => `${name}=${value(name)}\n`)
      .join("");
  const expected = names((name) => {
    if (/no_/i.test(name)) return "localhost,127.0.0.1,::1";
    return name === "NODE_USE_ENV_PROXY" ? "1" : `http://${url}`;
  });
  expect((await proxies()).split("\n").sort()).toEqual(expected.split("\n").sort());
  await listen(agent, false);
  expect(await proxies()).toBe("");
});

test("the end of the connection resets its tunnels and closes the port, until the next one asks for it", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.start((socket) => socket.pause());
  const before = descriptors(agent);
  await listen(agent);
  const into = await HostTunnel.open(agent, server.port);
  await into.send(pattern(tunnelWindowBytes));
  const client = await guestClient(agent.proxyPort);
  await agent.accepted();
  const failed = once(client, "error").catch((error) => [error]);
  client.resume();
  await agent.connect();
  expect(((await failed)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET");
  expect(await connectError(agent.proxyPort)).toBe("ECONNREFUSED");
  await untilDescriptors(agent, before);
  expect((await listen(agent)).ok).toBe(true);
  const again = await guestClient(agent.proxyPort);
  again.end("again");
  expect((await (await acceptedBy(agent)).readToEnd()).toString()).toBe("again");
});

test("while held nothing comes, and after RELEASE all goes on", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.echo();
  await listen(agent);
  const tunnel = await HostTunnel.open(agent, server.port);
  await tunnel.send(pattern(tunnelWindowBytes));
  const answered = async (kind: number) => {
    const stream = agent.newStream();
    agent.send(kind, stream);
    expect(outcome(await agent.next(stream)).ok).toBe(true);
  };
  await answered(type.hold);
  const came = agent.pendingFrames(tunnel.stream).length;
  const client = await guestClient(agent.proxyPort);
  client.end("waited");
  await Bun.sleep(200);
  expect(agent.pendingFrames(tunnel.stream).length).toBe(came);
  expect(agent.pendingFrames(0x8000_0000)).toBeEmpty();
  await answered(type.release);
  tunnel.end();
  expect((await tunnel.readToEnd()).equals(pattern(tunnelWindowBytes))).toBe(true);
  expect((await (await acceptedBy(agent)).readToEnd()).toString()).toBe("waited");
});

test("1024 tunnels at once are carried, one more is refused, and their places are given again", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.echo();
  await listen(agent);
  const before = descriptors(agent);
  const tunnels: HostTunnel[] = [];
  for (let at = 0; at < MOST_TUNNELS; at++) tunnels.push(await HostTunnel.open(agent, server.port));
  const stream = agent.newStream();
  agent.send(type.open, stream, { port: server.port });
  expect(parse(await agent.next(stream))).toMatchObject({ code: "too_many_tunnels" });
  const refused = connect({ port: agent.proxyPort, host: "127.0.0.1" }).resume();
  const { promise: failed, resolve } = Promise.withResolvers<NodeJS.ErrnoException>();
  refused.on("error", resolve);
  expect((await failed).code).toBe("ECONNRESET");
  await Promise.all(
    tunnels.map(async (tunnel, at) => {
      await tunnel.send(Buffer.from(`tunnel ${at}`));
      tunnel.end();
      expect((await tunnel.readToEnd()).toString()).toBe(`tunnel ${at}`);
    }),
  );
  await untilDescriptors(agent, before);
  const client = await guestClient(agent.proxyPort);
  client.end("free again");
  expect((await (await acceptedBy(agent)).readToEnd()).toString()).toBe("free again");
});

test("frames that make no sense on a tunnel end that tunnel at most", async () => {
  await using agent = await AgentProcess.open();
  await using server = await GuestServer.echo();
  for (const kind of [type.stdin, type.kill, type.command, type.stdinEof, type.eof, type.credit, type.data]) {
    const tunnel = await HostTunnel.open(agent, server.port);
    for (const payload of [Buffer.alloc(0), Buffer.from([1, 2, 3]), Buffer.from([1, 0, 0, 0])]) {
      agent.send(kind, tunnel.stream, payload);
      agent.send(kind, 0, payload);
    }
    startRun(agent, "true");
    tunnel.cancel();
  }
  expect((await run(agent, "echo alive")).stdout.toString()).toBe("alive\n");
});
