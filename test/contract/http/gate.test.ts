import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { HttpFixture, OPENED, request } from "../../support/http-fixture.ts";
import { RawHttp } from "../../support/raw-http.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const TOKEN = { IGN_MCP_HTTP_TOKEN: "right-token" };
const RIGHT = { authorization: "Bearer right-token" };
const LIST = request(1, "tools/list");

test.each([
  ["no credentials", {}, 'Bearer realm="ignition-mcp"'],
  ["a wrong token", { authorization: "Bearer wrong" }, 'Bearer realm="ignition-mcp", error="invalid_token"'],
  [
    "another scheme",
    { authorization: "Basic cmlnaHQtdG9rZW4=" },
    'Bearer realm="ignition-mcp", error="invalid_token"',
  ],
  ["the token as a query", {}, 'Bearer realm="ignition-mcp"'],
])("%s is answered with 401 and how to come in", async (name, headers, challenge) => {
  await using server = await HttpFixture.start({ env: TOKEN });
  const url = name.includes("query") ? `${server.url}?access_token=right-token` : server.url;
  for (const method of ["POST", "GET", "DELETE", "PUT"]) {
    const response = await fetch(url, { method, headers });
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, challenge]);
    expect(await response.json()).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32000 } });
  }
});

test("who may not come in is answered before a body is there", async () => {
  await using server = await HttpFixture.start({ env: TOKEN });
  const socket = new RawHttp(server.port);
  socket.write("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n");
  expect(await socket.received(/^HTTP.*\r\n/)).toStartWith("HTTP/1.1 401");
  socket.close();
});

test.each([
  "evil.example",
  "localhost.evil.example",
  "127.0.0.1.evil.example:80",
  "10.0.0.1",
  "user@localhost",
])("the Host %p is refused before the token is looked at", async (host) => {
  await using server = await HttpFixture.start({ env: TOKEN });
  const response = await server.fetch("POST", { ...RIGHT, host }, LIST);
  expect(response.status).toBe(403);
});

test.each(["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80", "mcp.example.org"])(
  "the Host %p is ours",
  async (host) => {
    await using server = await HttpFixture.start({ env: { IGN_MCP_HTTP_HOSTS: "mcp.example.org" } });
    expect((await server.fetch("POST", { host }, LIST)).status).toBe(400); // no session: it came in
  },
);

test.each(["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example"])(
  "a page of %p may not ask",
  async (origin) => {
    await using server = await HttpFixture.start();
    for (const method of ["POST", "GET", "OPTIONS"]) {
      const response = await server.fetch(method, { origin });
      expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    }
  },
);

test("a page of a listed origin may ask, and a browser lets it read the answer", async () => {
  const origin = "https://app.example.org";
  await using server = await HttpFixture.start({ env: { ...TOKEN, IGN_MCP_HTTP_ORIGINS: origin } });
  const preflight = await server.fetch("OPTIONS", { origin });
  expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, origin]);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("Mcp-Session-Id");
  const refused = await server.fetch("POST", { origin }, LIST);
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, origin]);
  const client = await server.client({ ...RIGHT, origin });
  const answer = await client.send("POST", LIST);
  expect([answer.status, answer.headers.get("access-control-expose-headers")]).toEqual([
    200,
    "Mcp-Session-Id, WWW-Authenticate",
  ]);
  await answer.text();
});

test("sessions end when their client's token is taken away", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("tokens");
  writeFileSync(path, "ann:token-of-ann\nbob:token-of-bob\n");
  await using server = await HttpFixture.start({ env: { IGN_MCP_HTTP_TOKENS_FILE: path } });
  const ann = await server.client({ authorization: "Bearer token-of-ann" });
  const bob = await server.client({ authorization: "Bearer token-of-bob" });
  const streams = [await ann.send("GET"), await bob.send("GET")] as const;
  writeFileSync(path, "ann:new-token-of-ann\n");
  server.tokens.reload();
  server.sessions.endStale();
  expect((await ann.send("POST", LIST)).status).toBe(401);
  expect((await bob.send("POST", LIST)).status).toBe(401);
  expect(await streams[1].text()).toBe(OPENED); // its session ended, and with it the stream
  const renewed = await ann.send("POST", LIST, { authorization: "Bearer new-token-of-ann" });
  expect(renewed.status).toBe(200); // a client that renews its token keeps its session
  await renewed.text();
  await streams[0].body?.cancel();
});
