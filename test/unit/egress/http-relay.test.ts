import { expect, test } from "bun:test";
import { dialTcp } from "../../../src/egress/dial.ts";
import { ALLOW_ALL, type EgressPolicy } from "../../../src/egress/egress-policy.ts";
import { parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { GuestEnd, TestGate } from "../../support/proxied-guest.ts";
import { TcpServer } from "../../support/tcp-server.ts";

const NAMES: EgressPolicy = {
  kind: "profile",
  rules: parseEgressProfile('{"allow_sni":["a.example"]}', "test"),
};

/** Answers with what it understood of the request. */
function echo(name = "echo") {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search, host } = new URL(request.url);
      return new Response(`${name}: ${request.method} ${host} ${pathname}${search} ${await request.text()}.`);
    },
  });
}

function get(host: string, path = "/", ...fields: string[]): string {
  return [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, ...fields, "\r\n"].join("\r\n");
}

async function answerTo(gate: TestGate, ...requests: string[]): Promise<string> {
  const guest = new GuestEnd(gate);
  await guest.send(requests.join(""));
  await guest.end();
  const answer = await guest.rest();
  await guest.served;
  return answer;
}

test("requests to one server go over one connection, one after another, with their bodies", async () => {
  using server = echo();
  let dialled = 0;
  using gate = new TestGate({
    policy: ALLOW_ALL,
    dial: (_address, port, signal) => {
      dialled++;
      return dialTcp("127.0.0.1", port, signal);
    },
  });
  const host = `a.example:${server.port}`;
  const guest = new GuestEnd(gate);
  await guest.send(get(host, "/one?q=1"));
  await guest.receive(`echo: GET ${host} /one?q=1 .`);
  await guest.send(`POST http://${host}/two HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\n\r\nbo`);
  await guest.send("dy");
  await guest.receive(`echo: POST ${host} /two body.`);
  const chunked = `POST http://${host}/three HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  await guest.send(`${chunked}3;x=y\r\nchu\r\n4\r\nnked\r\n0\r\nX: y\r\n\r\n`);
  await guest.receive(`echo: POST ${host} /three chunked.`);
  await guest.end();
  await guest.rest();
  await guest.served;
  expect(dialled).toBe(1);
  expect(gate.lines).toMatchObject([{ destination: host, verdict: "allowed", reason: "policy" }]);
});

test("a large body arrives whole", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => new Response(`${(await request.bytes()).byteLength} bytes`),
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const host = `a.example:${server.port}`;
  const guest = new GuestEnd(gate);
  await guest.send(`PUT http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 8000000\r\n\r\n`);
  for (let sent = 0; sent < 8_000_000; sent += 80_000) await guest.send(Buffer.alloc(80_000));
  await guest.receive("8000000 bytes");
  await guest.end();
  await guest.served;
});

test("a request for another server gets a connection of its own, and its own decision", async () => {
  using one = echo("one");
  using two = echo("two");
  using gate = new TestGate({ policy: NAMES });
  const guest = new GuestEnd(gate);
  await guest.send(get(`a.example:${one.port}`));
  await guest.receive("one: GET");
  await guest.send(get(`a.example:${two.port}`));
  await guest.receive("two: GET");
  await guest.send(get("b.example"));
  expect(await guest.rest()).toEndWith(
    "only names in allow_sni and addresses in allow_cidrs are reachable.\n",
  );
  await guest.end();
  await guest.served;
  expect(gate.lines).toMatchObject([
    { destination: `a.example:${one.port}`, verdict: "allowed", reason: "name" },
    { destination: `a.example:${two.port}`, verdict: "allowed", reason: "name" },
    { destination: "b.example:80", verdict: "refused", reason: "name_not_listed" },
  ]);
});

test("requests that do not wait for answers are answered in their order, also by different servers", async () => {
  using one = echo("one");
  using two = echo("two");
  using gate = new TestGate({ policy: ALLOW_ALL });
  const [first, second] = [`a.example:${one.port}`, `a.example:${two.port}`];
  const answer = await answerTo(gate, get(first, "/1"), get(first, "/2"), get(second, "/3"));
  const order = ["one: GET", "/1", "one: GET", "/2", "two: GET", "/3"].map((text) => answer.indexOf(text));
  expect(
    [...answer.matchAll(/(one|two): GET \S+ (\S+)/g)].map(([, server, path]) => `${server}${path}`),
  ).toEqual(["one/1", "one/2", "two/3"]);
  expect(order).not.toContain(-1);
});

test.each([
  [
    "a host that is not the target's",
    "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
    400,
    "host_mismatch",
  ],
  [
    "a length and chunks",
    "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    400,
    "bad_request",
  ],
  ["a folded line", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n x\r\n\r\n", 400, "bad_request"],
  ["garbage", "\x16\x03\x01\x00\xff\r\n\r\n", 400, "bad_request"],
  ["a head that never ends", "G".repeat(40_000), 400, "bad_request"],
  ["a head that is cut off", "GET http://a.ex", 400, "bad_request"],
  ["a name that is not listed", get("b.example"), 403, "name_not_listed"],
  ["an address", get("8.8.8.8"), 403, "address_not_listed"],
] as const)("%s is refused in a sentence", async (_, request, status, reason) => {
  using gate = new TestGate({ policy: NAMES });
  const answer = await answerTo(gate, request);
  expect(answer).toStartWith(`HTTP/1.1 ${status} `);
  expect(answer).toContain(`x-egress-reason: ${reason}\r\n`);
  expect(answer).toMatch(/\r\n\r\n[A-Z][^\n]+\.\n$/);
  expect(gate.counters.refused.get(reason)).toBe(1);
});

test("bad chunks end the connection before a byte of the next request is believed", async () => {
  let received = "";
  using server = await TcpServer.start((socket) => socket.on("data", (bytes) => (received += bytes)));
  using gate = new TestGate({ policy: ALLOW_ALL });
  const host = `a.example:${server.port}`;
  const guest = new GuestEnd(gate);
  await guest.send(
    `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n`,
  );
  await guest.rest().catch(() => undefined);
  await guest.served;
  expect(received).not.toContain("smuggled");
  expect(gate.counters.refused.get("bad_request")).toBe(1);
});

test("a server that ends its connection ends the guest's", async () => {
  using server = await TcpServer.start((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end"));
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = new GuestEnd(gate);
  await guest.send(get(`a.example:${server.port}`));
  expect(await guest.rest()).toEndWith("until the end");
  await guest.end();
  await guest.served;
  expect(gate.counters.allowed).toBe(1);
});

test("a server that answers before it has read all still has its answer passed on", async () => {
  using server = await TcpServer.start((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\n"));
  });
  using gate = new TestGate({ policy: ALLOW_ALL });
  const host = `a.example:${server.port}`;
  const guest = new GuestEnd(gate);
  await guest.send(`PUT http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 99\r\n\r\nx`);
  expect(await guest.rest()).toStartWith("HTTP/1.1 413 ");
  await guest.end();
  await guest.served;
});

test("in a tunnel to port 80 of a listed name, requests are for that name only", async () => {
  using server = echo();
  using gate = new TestGate({
    policy: NAMES,
    dial: (_address, _port, signal) => dialTcp("127.0.0.1", server.port!, signal),
  });
  const connect = "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n";
  const last = "Host: a.example\r\nConnection: close\r\n\r\n";
  expect(await answerTo(gate, connect, `GET /x HTTP/1.1\r\n${last}`)).toContain("echo: GET a.example /x .");
  expect(await answerTo(gate, connect, "GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n")).toContain(
    "x-egress-reason: host_mismatch",
  );
});

test("a client that stalls in a body, and a server that takes none or answers none, are ended", async () => {
  using deaf = await TcpServer.start((socket) => void socket.pause());
  using gate = new TestGate({ policy: ALLOW_ALL, limits: { idleMs: 2000 } });
  const host = `a.example:${deaf.port}`;
  const head = (bytes: number) =>
    `PUT http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${bytes}\r\n\r\n`;
  const [stalling, sending, waiting] = [new GuestEnd(gate), new GuestEnd(gate), new GuestEnd(gate)];
  await stalling.send(`${head(10)}half`);
  await waiting.send(get(host));
  await sending.send(head(100_000_000));
  const sent = (async () => {
    for (;;) await sending.send(Buffer.alloc(100_000));
  })();
  await expect(sent).rejects.toThrow();
  await Promise.all([stalling, sending, waiting].map(({ served }) => served));
  expect(gate.lines.map((line) => line["ended"])).toEqual(Array(3).fill("nothing was carried for too long"));
  expect(gate.counters.open).toBe(0);
}, 30_000);
