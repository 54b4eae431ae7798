import { expect, test } from "bun:test";
import { ALLOW_ALL, DENY_ALL } from "../../../src/egress/egress-policy.ts";
import { eventually } from "../../support/eventually.ts";
import { GuestEnd, TestGate } from "../../support/proxied-guest.ts";

const GET = "GET http://ignition.internal/ HTTP/1.1\r\nHost: ignition.internal\r\n\r\n";

function post(bodyBytes: number): string {
  return `POST http://ignition.internal/ HTTP/1.1\r\nHost: ignition.internal\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
}

async function answerTo(gate: TestGate, ...requests: string[]): Promise<string> {
  const guest = new GuestEnd(gate);
  await guest.send(requests.join(""));
  await guest.end();
  const answer = await guest.rest();
  await guest.served;
  return answer;
}

test.each([
  ["an absolute URL", "", "POST http://ignition.internal/wall?q HTTP/1.1"],
  ["a path", "", "POST /wall?q HTTP/1.1"],
  [
    "a tunnel",
    "CONNECT ignition.internal:80 HTTP/1.1\r\nHost: ignition.internal:80\r\n\r\n",
    "POST /wall?q HTTP/1.1",
  ],
])("the engine's door is reached by %s, whatever the policy", async (_, before, line) => {
  using gate = new TestGate({
    policy: DENY_ALL,
    internal: async (request) =>
      Response.json({
        url: request.url,
        method: request.method,
        token: request.headers.get("x-token"),
        body: await request.text(),
      }),
  });
  const request = `${line}\r\nHost: ignition.internal\r\nX-Token: t\r\nContent-Length: 5\r\n\r\nhello`;
  const answer = await answerTo(gate, before, request, request);
  const bodies = [...answer.matchAll(/\{[^}]+\}/g)].map(([text]) => JSON.parse(text));
  const expected = { url: "http://ignition.internal/wall?q", method: "POST", token: "t", body: "hello" };
  expect(bodies).toEqual([expected, expected]);
  expect(gate.lines).toMatchObject([
    { destination: "ignition.internal:80", reason: "internal" },
    { reason: "internal" },
  ]);
});

test("behind the engine's door, nothing is 404, a failure is 500 and told in the log, too much is refused", async () => {
  using none = new TestGate({ policy: ALLOW_ALL });
  expect(await answerTo(none, GET)).toStartWith("HTTP/1.1 404 ");
  using nobody = new TestGate({ policy: ALLOW_ALL, internal: async () => null });
  expect(await answerTo(nobody, GET)).toStartWith("HTTP/1.1 404 ");
  using broken = new TestGate({
    policy: ALLOW_ALL,
    internal: () => Promise.reject(new TypeError("a mistake")),
  });
  expect(await answerTo(broken, GET)).toStartWith("HTTP/1.1 500 ");
  expect(broken.lines).toMatchObject([{ reason: "internal_error", ended: "a mistake" }]);
  const guest = new GuestEnd(nobody);
  await guest.send(post(2_000_000));
  const sending = (async () => {
    for (let sent = 0; sent < 20; sent++) await guest.send(Buffer.alloc(100_000));
  })().catch(() => undefined);
  expect(await guest.receive("\r\n\r\n")).toStartWith("HTTP/1.1 400 ");
  await sending;
});

test("where there is no door, nothing of a body is waited for", async () => {
  using gate = new TestGate({ policy: ALLOW_ALL });
  const guest = new GuestEnd(gate);
  await guest.send(post(500_000));
  expect(await guest.rest()).toMatch(/^HTTP\/1.1 404 .*\r\nconnection: close\r\n/s);
  await guest.end();
  await guest.served;
  expect(await answerTo(gate, GET, GET)).toMatch(/^HTTP\/1.1 404 .*HTTP\/1.1 404 /s);
});

test("few bodies are collected at once, the others wait, and one that stalls is refused", async () => {
  const POSTS = 20;
  using gate = new TestGate({
    policy: DENY_ALL,
    internal: async () => new Response("taken"),
    limits: { handshakeMs: 2000 },
  });
  const body = Buffer.alloc(400_000);
  let sent = 0;
  const guests = Array.from({ length: POSTS }, () => new GuestEnd(gate));
  const answers = guests.map(async (guest) => {
    await guest.send(post(body.byteLength + 1));
    await guest.send(body).then(
      () => sent++,
      // Refused before it could send all.
      () => undefined,
    );
    const answer = await guest.rest();
    await guest.end().catch(() => undefined);
    await guest.served;
    return answer;
  });
  await eventually("some bodies to be taken", () => sent > 0);
  for (const answer of await Promise.all(answers)) expect(answer).toStartWith("HTTP/1.1 408 ");
  expect(gate.counters.refused.get("handshake_timeout")).toBe(POSTS);
  // Nothing was kept: the next one is served.
  expect(await answerTo(gate, `${post(5)}hello`)).toStartWith("HTTP/1.1 200 ");
}, 30_000);

test("a request that has no body by its nature is not given one", async () => {
  using gate = new TestGate({ policy: DENY_ALL, internal: async () => new Response("taken") });
  const answer = await answerTo(gate, `${post(5).replace("POST", "GET")}hello`);
  expect(answer).toStartWith("HTTP/1.1 400 ");
});
