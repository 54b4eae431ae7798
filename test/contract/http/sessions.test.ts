import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { eventually } from "../../support/eventually.ts";
import { HttpFixture, OPENED, request } from "../../support/http-fixture.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { FakeSessions } from "../fake-sessions.ts";

const LIST = request(50, "tools/list");
const ANN = { authorization: "Bearer token-of-ann" };
const BOB = { authorization: "Bearer token-of-bob" };

/** A server that knows Ann and Bob. */
async function startForTwo(env: Record<string, string> = {}, sessions = new FakeSessions()) {
  using directory = new TemporaryDirectory();
  const path = directory.join("tokens");
  writeFileSync(path, "ann:token-of-ann\nbob:token-of-bob\n");
  return await HttpFixture.start({ env: { IGN_MCP_HTTP_TOKENS_FILE: path, ...env }, sessions });
}

test("a session of another principal is as unknown as one that never was", async () => {
  await using server = await startForTwo();
  const ann = await server.client(ANN);
  for (const method of ["POST", "GET", "DELETE"]) {
    const body = method === "POST" ? LIST : undefined;
    const foreign = await ann.send(method, body, BOB);
    const unknown = await ann.send(method, body, { ...BOB, "mcp-session-id": "mcp_never" });
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect(await foreign.text()).toBe(await unknown.text());
  }
  expect((await ann.send("POST", LIST)).status).toBe(200);
});

test("an MCP session knows only the VM sessions it opened", async () => {
  await using server = await startForTwo();
  const clients = await Promise.all([server.client(ANN), server.client(ANN), server.client(BOB)]);
  const [first, second] = clients;
  const id = await first.open();
  expect((await first.call("run", { session_id: id, command: "echo mine" })).fields["stdout"]).toBe("mine\n");
  for (const other of clients.slice(1)) {
    for (const [tool, args] of [
      ["run", { command: "echo theirs" }],
      ["write_file", { path: "/x", content_base64: "" }],
      ["reset", {}],
      ["close", {}],
      ["poll", { run_id: "run_1" }],
      ["read_file", { path: "/x" }],
      ["checkpoint", {}],
    ] as const) {
      const { isError, text } = await other.call(tool, { session_id: id, ...args });
      expect([isError, text]).toEqual([true, expect.stringContaining(`no session '${id}'`)]);
    }
    expect((await other.call("list_sessions")).text).not.toContain(id);
  }
  const own = await second.open();
  expect((await second.call("list_sessions")).text).toContain(own);
});

test("DELETE closes the session's VM sessions, and its id is gone", async () => {
  const sessions = new FakeSessions();
  await using server = await startForTwo({}, sessions);
  const ann = await server.client(ANN);
  const bob = await server.client(BOB);
  await ann.open();
  const kept = await bob.open();
  expect((await ann.send("DELETE")).status).toBe(204);
  expect(sessions.list().map(({ sessionId }) => sessionId)).toEqual([kept]);
  expect((await ann.send("POST", LIST)).status).toBe(404);
  expect((await ann.send("DELETE")).status).toBe(404);
});

test("DELETE ends the streams of its session", async () => {
  await using server = await startForTwo();
  const ann = await server.client(ANN);
  const id = await ann.open();
  const stream = await ann.send("GET");
  const call = ann.call("run", { session_id: id, command: "hang" }, 7).catch((error: Error) => error.message);
  const ended = stream.text();
  await ann.send("DELETE");
  expect(await ended).toBe(OPENED);
  expect(String(await call)).toContain("no answer");
});

/** Later than any session here may stay unused */
const later = () => performance.now() + 3_600_000;

test("an unused session ends with what it opened, unless a stream is open", async () => {
  const sessions = new FakeSessions();
  await using server = await startForTwo({}, sessions);
  const listening = await server.client(ANN);
  const stream = await listening.send("GET");
  const unused = await server.client(BOB);
  await unused.open();
  server.sessions.endStale(later());
  await eventually("the unused session's VM session to be closed", () => sessions.list().length === 0);
  expect((await unused.send("POST", LIST)).status).toBe(404);
  expect((await listening.send("POST", LIST)).status).toBe(200);
  await stream.body?.cancel();
});

test("a session whose run goes on does not end", async () => {
  const sessions = new FakeSessions();
  await using server = await startForTwo({}, sessions);
  const other = await server.client(BOB);
  await other.open();
  const ann = await server.client(ANN);
  const busy = await ann.open(); // FakeSessions reports runs in all but its first session
  server.sessions.endStale(later());
  await eventually("the session without a run to end", () => sessions.list().length === 1);
  expect(sessions.list()[0]!.sessionId).toBe(busy);
  expect((await ann.send("POST", LIST)).status).toBe(200);
});

test("unused sessions are looked for while the server runs", async () => {
  await using server = await startForTwo({ IGN_MCP_HTTP_IDLE_SECS: "1" });
  const unused = await server.client(ANN);
  // Each look is a use, so there is more than the idle time between them
  do await Bun.sleep(2000);
  while ((await unused.send("POST", LIST)).status !== 404);
}, 30_000);

test("beyond the cap no session begins until one ends", async () => {
  await using server = await startForTwo({ IGN_MCP_HTTP_MAX_CLIENTS: "2" });
  const first = await server.client(ANN);
  await server.client(BOB);
  const refused = await server.client(ANN).catch((error: Error) => error.message);
  expect(refused).toContain("503");
  expect(refused).toContain("IGN_MCP_HTTP_MAX_CLIENTS");
  await first.send("DELETE");
  await server.client(ANN);
});

test("ids cannot be guessed and never repeat", async () => {
  await using server = await startForTwo();
  const clients = await Promise.all(Array.from({ length: 20 }, () => server.client(ANN)));
  const ids = clients.map((client) => client.headers["mcp-session-id"]!);
  expect(new Set(ids).size).toBe(20);
  for (const id of ids) expect(id).toMatch(/^mcp_[a-z2-7]{26}$/);
});
