import { expect, spyOn, test } from "bun:test";
import { HttpBodies } from "../../../src/mcp/http-bodies.ts";
import { eventually } from "../../support/eventually.ts";
import { ACCEPT, HttpFixture, OPENED, readAnswer, request } from "../../support/http-fixture.ts";
import { RawHttp } from "../../support/raw-http.ts";

const MIB = 1_048_576;
const LIST = request(50, "tools/list");
const runRequest = (id: number, sessionId: string, command: string) =>
  request(id, "tools/call", { name: "run", arguments: { session_id: sessionId, command } });

/** Counts what `FakeSessions` says of its hanging calls. */
function watchHangs() {
  const seen = { begun: 0, cancelled: 0 };
  const spy = spyOn(process.stderr, "write").mockImplementation((text) => {
    if (String(text).includes("hangs")) seen.begun += 1;
    if (String(text).includes("cancelled")) seen.cancelled += 1;
    return true;
  });
  return { seen, [Symbol.dispose]: () => spy.mockRestore() };
}

test.each([
  ["no JSON", "{", 400, -32700],
  ["no message", { jsonrpc: "1.0" }, 400, -32600],
  ["a batch", [LIST], 400, -32600],
  ["nothing", "", 400, -32600],
])("a body that is %s is answered with a JSON-RPC error", async (_, body, status, code) => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const response = await client.send("POST", body);
  expect([response.status, await response.json()]).toMatchObject([status, { error: { code } }]);
  expect((await client.send("POST", LIST)).status).toBe(200);
});

test.each<[string, string, Record<string, string>, number]>([
  ["another method", "PUT", {}, 405],
  ["no Accept of both types", "POST", { accept: "application/json" }, 406],
  ["a GET that wants no stream", "GET", { accept: "application/json" }, 406],
  ["another content type", "POST", { "content-type": "text/plain" }, 415],
  ["an unknown protocol version", "POST", { "mcp-protocol-version": "1999-01-01" }, 400],
  ["a session that never was", "POST", { "mcp-session-id": "mcp_x" }, 404],
])("%s is refused", async (_, method, headers, status) => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const response = await client.send(method, method === "POST" ? LIST : undefined, headers);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ jsonrpc: "2.0", error: { message: expect.any(String) } });
});

test("without a session only initialize is taken, at /mcp only", async () => {
  await using server = await HttpFixture.start();
  expect((await server.fetch("POST", {}, LIST)).status).toBe(400);
  expect((await server.fetch("GET")).status).toBe(400);
  expect((await server.fetch("DELETE")).status).toBe(400);
  expect((await fetch(new URL("/", server.url))).status).toBe(404);
});

test("a refused initialize leaves no session", async () => {
  await using server = await HttpFixture.start({ env: { IGN_MCP_HTTP_MAX_CLIENTS: "1" } });
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } };
  const refused = await server.fetch("POST", { accept: "text/html" }, request(0, "initialize", params));
  expect(refused.status).toBe(406);
  await server.client();
});

test("notifications are taken with 202", async () => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const response = await client.send("POST", { jsonrpc: "2.0", method: "notifications/initialized" });
  expect([response.status, await response.text()]).toEqual([202, ""]);
});

test("an id that is still being answered is not taken twice", async () => {
  using hangs = watchHangs();
  await using server = await HttpFixture.start();
  const client = await server.client();
  const id = await client.open();
  const first = await client.send("POST", runRequest(7, id, "hang"));
  await eventually("the first call to hang", () => hangs.seen.begun === 1);
  expect((await client.send("POST", runRequest(7, id, "echo twice"))).status).toBe(400);
  await first.body?.cancel();
  await eventually("the first call to be cancelled", () => hangs.seen.cancelled === 1);
  expect((await client.call("run", { session_id: id, command: "echo again" }, 7)).fields["stdout"]).toBe(
    "again\n",
  );
});

test("a call whose client has vanished is cancelled", async () => {
  using hangs = watchHangs();
  await using server = await HttpFixture.start();
  const client = await server.client();
  const body = JSON.stringify(runRequest(7, await client.open(), "hang"));
  const socket = new RawHttp(server.port);
  const headers = Object.entries({ ...client.headers, accept: ACCEPT, "content-type": "application/json" });
  const lines = [...headers, ["content-length", String(body.length)]].map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
  await eventually("the call to hang", () => hangs.seen.begun === 1);
  expect(hangs.seen.cancelled).toBe(0);
  socket.close();
  await eventually("the call to be cancelled", () => hangs.seen.cancelled === 1);
});

test("a call that its client cancels ends its stream without an answer", async () => {
  using hangs = watchHangs();
  await using server = await HttpFixture.start();
  const client = await server.client();
  const id = await client.open();
  const response = await client.send("POST", runRequest(7, id, "hang"));
  await eventually("the call to hang", () => hangs.seen.begun === 1);
  const params = { requestId: 7, reason: "no longer wanted" };
  await client.send("POST", { jsonrpc: "2.0", method: "notifications/cancelled", params });
  expect(await response.text()).toBe(OPENED);
  expect(hangs.seen.cancelled).toBe(1);
});

test("the shutdown answers calls in flight and ends all streams", async () => {
  using hangs = watchHangs();
  const server = await HttpFixture.start();
  const client = await server.client();
  const stream = await client.send("GET");
  const call = client.call("run", { session_id: await client.open(), command: "hang" });
  await eventually("the call to hang", () => hangs.seen.begun === 1);
  await server[Symbol.asyncDispose]();
  expect((await call).text).toContain("shutting down");
  expect(await stream.text()).toBe(OPENED);
});

test("the newest of two listening streams is the live one", async () => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const first = await client.send("GET");
  const second = await client.send("GET");
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(await first.text()).toBe(OPENED);
  await second.body?.cancel();
});

test("a body of 10 MiB arrives whole", async () => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const session_id = await client.open();
  const content_base64 = Buffer.alloc(10 * MIB, "abc").toString("base64");
  await client.call("write_file", { session_id, path: "/f", content_base64 });
  expect((await client.call("run", { session_id, command: "size /f" })).fields["stdout"]).toBe(
    String(10 * MIB),
  );
});

test("a body beyond 64 MiB is refused, announced or not, and so is one of 1 MiB without a session", async () => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const tooLong = "x".repeat(64 * MIB + 1);
  const chunks = () => new Blob([tooLong]).stream();
  const headers = { ...client.headers, accept: ACCEPT, "content-type": "application/json" };
  const answers = [
    await client.send("POST", tooLong),
    await fetch(server.url, { method: "POST", headers, body: chunks() }),
    await server.fetch("POST", {}, "x".repeat(MIB + 1)),
  ];
  expect(answers.map(({ status }) => status)).toEqual([413, 413, 413]);
  for (const answer of answers) expect(await answer.text()).toContain("Send large files in parts");
  expect((await client.send("POST", LIST)).status).toBe(200);
});

test("all bodies together have a limit", async () => {
  const bodies = new HttpBodies({ totalBytes: 3 * MIB, deadlineMs: 10_000 });
  await using server = await HttpFixture.start({ bodies });
  const client = await server.client();
  const response = await client.send("POST", "x".repeat(4 * MIB));
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect((await client.send("POST", LIST)).status).toBe(200);
});

test("a body that does not arrive in time is given up", async () => {
  await using server = await HttpFixture.start({
    bodies: new HttpBodies({ totalBytes: MIB, deadlineMs: 50 }),
  });
  const socket = new RawHttp(server.port);
  socket.write("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
  expect(await socket.received(/deadline|did not arrive/)).toStartWith("HTTP/1.1 408");
  socket.close();
});

test("progress comes on the call's own stream", async () => {
  await using server = await HttpFixture.start();
  const client = await server.client();
  const params = { name: "open_session", arguments: {}, _meta: { progressToken: 5 } };
  const text = await (await client.send("POST", request(9, "tools/call", params))).text();
  expect(text).toContain('"method":"notifications/progress"');
  expect(readAnswer(text).isError).toBe(false);
});
