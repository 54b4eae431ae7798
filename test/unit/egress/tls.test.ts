import { afterAll, expect, test } from "bun:test";
import { dialTcp } from "../../../src/egress/dial.ts";
import type { EgressPolicy } from "../../../src/egress/egress-policy.ts";
import { parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { clientHello, record } from "../../support/client-hello.ts";
import { GuestEnd, ProxyPort, PUBLIC, TestGate } from "../../support/proxied-guest.ts";
import { makeCertificate } from "../../support/self-made-certificate.ts";
import { TcpServer } from "../../support/tcp-server.ts";

const ACCESS_DENIED = "\x15\x03\x03\x00\x02\x02\x31";
const HANDSHAKE = 22;

const certificate = makeCertificate("a.example", "b.example");
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  tls: certificate,
  fetch: (request) => new Response(`reached ${new URL(request.url).hostname}`),
});
afterAll(() => server.stop(true));

function profile(rules: object): EgressPolicy {
  return { kind: "profile", rules: parseEgressProfile(JSON.stringify(rules), "test") };
}

async function fetchThrough(gate: TestGate, host: string): Promise<string> {
  await using proxy = await ProxyPort.open(gate);
  const url = `https://${host}:${server.port}/`;
  const response = await fetch(url, { proxy: proxy.url, tls: { ca: certificate.cert }, keepalive: false });
  return await response.text();
}

/** Opens a tunnel and sends bytes into it; all that comes back behind the proxy's consent. */
async function answerTo(gate: TestGate, target: string, bytes: Uint8Array): Promise<string> {
  const guest = new GuestEnd(gate);
  await guest.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const consent = await guest.receive("\r\n\r\n");
  expect(consent).toStartWith("HTTP/1.1 200 ");
  await guest.send(bytes);
  const answer = (await guest.rest()).slice(consent.length);
  await guest.end();
  await guest.served;
  return answer;
}

test("a listed name is reached over TLS", async () => {
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  expect(await fetchThrough(gate, "a.example")).toBe("reached a.example");
});

test("a name that is not listed is not reached", async () => {
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  await expect(fetchThrough(gate, "b.example")).rejects.toThrow();
  expect(gate.lines).toMatchObject([{ verdict: "refused", reason: "name_not_listed" }]);
});

test("a TLS client that names another server than the tunnel's is told so in TLS", async () => {
  let received = 0;
  using target = await TcpServer.start((socket) => socket.on("data", (bytes) => (received += bytes.length)));
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example", "b.example"] }) });
  const hello = record(HANDSHAKE, clientHello("b.example"));
  expect(await answerTo(gate, `a.example:${target.port}`, hello)).toBe(ACCESS_DENIED);
  expect(gate.counters.refused.get("sni_mismatch")).toBe(1);
  expect(received).toBe(0);
});

test("one that names no server is refused", async () => {
  using target = await TcpServer.start(() => undefined);
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  const hello = record(HANDSHAKE, clientHello(null));
  expect(await answerTo(gate, `a.example:${target.port}`, hello)).toBe(ACCESS_DENIED);
  expect(gate.counters.refused.get("sni_missing")).toBe(1);
});

test("a ClientHello that cannot be read is refused", async () => {
  using target = await TcpServer.start(() => undefined);
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  expect(await answerTo(gate, `a.example:${target.port}`, record(HANDSHAKE, Buffer.of(1, 0, 0, 0)))).toBe(
    ACCESS_DENIED,
  );
  expect(gate.counters.refused.get("bad_client_hello")).toBe(1);
});

test("the version of a record hides no ClientHello, on no port", async () => {
  using target = await TcpServer.start(() => undefined);
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  for (const version of [2, 4]) {
    const hello = record(HANDSHAKE, clientHello("b.example"));
    hello[1] = version;
    expect(await answerTo(gate, `a.example:${target.port}`, hello)).toBe(ACCESS_DENIED);
  }
  expect(gate.counters.refused.get("bad_client_hello")).toBe(2);
});

test("on port 443 nothing but TLS is carried to a listed name", async () => {
  using target = await TcpServer.start(() => undefined);
  using gate = new TestGate({
    policy: profile({ allow_sni: ["a.example"] }),
    dial: (_address, _port, signal) => dialTcp("127.0.0.1", target.port, signal),
  });
  await expect(answerTo(gate, "a.example:443", Buffer.from("SSH-2.0-x\r\n"))).rejects.toThrow();
  expect(gate.counters.refused.get("not_tls")).toBe(1);
});

test("a protocol in which the server speaks first reaches a listed name on another port", async () => {
  using target = await TcpServer.start((socket) => {
    socket.write("220 hello\r\n");
    socket.on("data", (bytes) => socket.end(`you said ${bytes}`));
  });
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }) });
  expect(await answerTo(gate, `a.example:${target.port}`, Buffer.from("hi"))).toBe(
    "220 hello\r\nyou said hi",
  );
});

test("what allow_cidrs lists needs no server name", async () => {
  using target = await TcpServer.start((socket) => socket.end("any bytes"));
  using gate = new TestGate({ policy: profile({ allow_cidrs: [`${PUBLIC}/32`] }) });
  expect(await answerTo(gate, `anything.example:${target.port}`, record(HANDSHAKE, clientHello(null)))).toBe(
    "any bytes",
  );
  expect(gate.lines).toMatchObject([{ verdict: "allowed", reason: "cidr" }]);
});

test("a client that does not introduce itself in time is refused", async () => {
  using target = await TcpServer.start(() => undefined);
  using gate = new TestGate({ policy: profile({ allow_sni: ["a.example"] }), limits: { handshakeMs: 2000 } });
  const half = record(HANDSHAKE, clientHello("a.example")).subarray(0, 20);
  expect(await answerTo(gate, `a.example:${target.port}`, half)).toBe(ACCESS_DENIED);
  expect(gate.counters.refused.get("handshake_timeout")).toBe(1);
});
