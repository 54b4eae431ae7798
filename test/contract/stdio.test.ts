import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Message, RawClient } from "../support/raw-client.ts";
import { initializedFixture, startFixture } from "./fixture-client.ts";

async function withSession(): Promise<RawClient> {
  const server = await initializedFixture();
  server.call("open", "open_session", {});
  await server.next();
  return server;
}

const structure = (message: Message) => (message["result"] as Message)["structuredContent"] as Message;
const residentBytes = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

test("malformed JSON is answered with -32700 and a null id, and the next line works", async () => {
  await using server = await initializedFixture();
  await server.sendLine('{"jsonrpc":"2.0","id":1,"method"');
  expect(await server.next()).toMatchObject({ id: null, error: { code: -32700 } });
  server.send({ jsonrpc: "2.0", id: 2, method: "ping" });
  expect(await server.next()).toEqual({ jsonrpc: "2.0", id: 2, result: {} });
});

test("JSON that is no JSON-RPC is answered with -32600 under its id", async () => {
  await using server = await initializedFixture();
  await server.sendLine('{"id":5,"method":"ping"}');
  expect(await server.next()).toMatchObject({ id: 5, error: { code: -32600 } });
  await server.sendLine("[]");
  expect(await server.next()).toMatchObject({ id: null, error: { code: -32600 } });
});

test("a line over 64 MiB is answered under its id with the limit, and the next line works", async () => {
  await using server = await withSession();
  const content = "A".repeat(65 * 1_048_576);
  await server.sendLine(
    `{"method":"tools/call","params":{"name":"write_file","arguments":{"session_id":"ses_1","path":"/a","content_base64":"${content}"}},"jsonrpc":"2.0","id":"late"}`,
  );
  const answer = await server.next();
  expect(answer).toMatchObject({ id: "late", error: { code: -32600 } });
  expect(JSON.stringify(answer)).toContain("67108864 bytes");
  server.call(2, "run", { session_id: "ses_1", command: "echo on" });
  expect(structure(await server.next())).toMatchObject({ stdout: "on\n" });
});

test("lines of 10 MiB are judged as short ones are", async () => {
  await using server = await withSession();
  const filler = "A".repeat(10 * 1_048_576);
  await server.sendLine(filler);
  expect(await server.next()).toMatchObject({ id: null, error: { code: -32700 } });
  server.send({ jsonrpc: "2.0", id: 2, method: filler });
  const answer = await server.next();
  expect(answer).toMatchObject({ id: 2, error: { code: -32601 } });
  expect(JSON.stringify(answer).length).toBeLessThan(1000);
  server.call(3, "run", { session_id: "ses_1", command: `echo ${"a".repeat(1000)}`, filler });
  expect(JSON.stringify(await server.next())).toContain("bad_argument");
  server.call(4, filler, {});
  const unknown = await server.next();
  expect(unknown).toMatchObject({ id: 4, error: { code: -32602 } });
  expect(JSON.stringify(unknown).length).toBeLessThan(1000);
});

test("input that ends inside a line ends the server with 0", async () => {
  await using server = await initializedFixture();
  await server.sendText('{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"met');
  server.endInput();
  expect(await server.next()).toMatchObject({ id: 1, result: {} });
  expect(await server.exited()).toBe(0);
});

test("a file of 32 MiB arrives whole", async () => {
  await using server = await withSession();
  const content_base64 = Buffer.alloc(32 * 1_048_576, 65).toString("base64");
  server.call(2, "write_file", { session_id: "ses_1", path: "/big", content_base64 });
  expect(structure(await server.next())).toEqual({ result: "ok" });
  server.call(3, "run", { session_id: "ses_1", command: "size /big" });
  expect(structure(await server.next())).toMatchObject({ stdout: "33554432" });
});

test("an unknown tool and an unknown method are JSON-RPC errors", async () => {
  await using server = await initializedFixture();
  server.call(1, "fetch", {});
  expect(await server.next()).toMatchObject({ id: 1, error: { code: -32602 } });
  server.send({ jsonrpc: "2.0", id: 2, method: "resources/list" });
  expect(await server.next()).toMatchObject({ id: 2, error: { code: -32601 } });
});

test("calls before initialize are answered", async () => {
  await using server = startFixture();
  server.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  expect((await server.next())["result"]).toHaveProperty("tools");
  server.call(2, "open_session", {});
  expect(structure(await server.next())).toEqual({ session_id: "ses_1" });
});

test("two calls under one id are both answered", async () => {
  await using server = await withSession();
  server.call(7, "run", { session_id: "ses_1", command: "echo a" });
  server.call(7, "run", { session_id: "ses_1", command: "echo b" });
  const answers = await server.take(2);
  expect(answers.map((answer) => answer["id"])).toEqual([7, 7]);
  // Two calls at once: nothing says which of them ends first.
  expect(answers.map((answer) => structure(answer)["stdout"]).sort()).toEqual(["a\n", "b\n"]);
});

test("a cancelled call ends in the session layer, is not answered, and the session goes on", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "hang" });
  await server.stderrHas("the call hangs");
  server.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
  await server.stderrHas("the call was cancelled");
  server.call(3, "run", { session_id: "ses_1", command: "echo on" });
  expect(await server.next()).toMatchObject({ id: 3 });
});

test("progress comes before the answer and only when it was asked for", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "progress" });
  expect(await server.next()).toMatchObject({ id: 2 });
  server.call(3, "run", { session_id: "ses_1", command: "progress" }, { progressToken: "tok" });
  const [progress, answer] = await server.take(2);
  expect(progress).toEqual({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken: "tok", progress: 1, message: "first" },
  });
  expect(answer).toMatchObject({ id: 3 });
});

test("a stray console.log does not reach stdout", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "print" });
  expect(structure(await server.next())).toMatchObject({ stdout: "printed" });
  await server.stderrHas("a stray line for stdout");
});

test("a bug is answered without its details, which go to stderr", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "bug" });
  const answer = await server.next();
  expect(structure(answer)).toMatchObject({ error: { code: "internal_error" } });
  expect(JSON.stringify(answer)).not.toContain("secret");
  await server.stderrHas("secret detail of a bug");
});

test("the end of input ends the server with 0 after answers to calls in flight", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "hang" });
  await server.stderrHas("the call hangs");
  server.endInput();
  expect(structure(await server.next())).toMatchObject({ error: { code: "shutting_down" } });
  expect(await server.exited()).toBe(0);
});

test("requests that end with the input are answered", async () => {
  await using server = startFixture();
  server.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  server.endInput();
  expect((await server.next())["result"]).toHaveProperty("tools");
  expect(await server.exited()).toBe(0);
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s ends the server with 0", async (signal) => {
  await using server = await withSession();
  server.kill(signal);
  expect(await server.exited()).toBe(0);
});

test("a client that closes stdout in the middle of an answer ends the server with 0", async () => {
  await using server = await withSession();
  server.call(2, "run", { session_id: "ses_1", command: "big 8000000" });
  await server.next();
  server.call(3, "run", { session_id: "ses_1", command: "big 8000000" });
  await server.closeOutput();
  expect(await server.exited()).toBe(0);
});

test("a client that never reads is not read from, costs bounded memory, and SIGTERM still works", async () => {
  await using server = await withSession();
  const line = JSON.stringify({
    jsonrpc: "2.0",
    id: 9,
    method: "tools/call",
    params: { name: "run", arguments: { session_id: "ses_1", command: "big 1000000" } },
  });
  const padded = line + " ".repeat(65_536);
  let taken = 0;
  let sending: Promise<void>;
  const isTaken = () => Promise.race([sending.then(() => true), Bun.sleep(3000).then(() => false)]);
  do sending = server.sendLine(padded);
  while ((await isTaken()) && ++taken < 1000);
  expect(taken).toBeLessThan(1000);
  expect(residentBytes(server.pid)).toBeLessThan(1_000_000_000);
  // It waited for this client: once answers are read it takes the next line.
  let goesOn = false;
  void sending.then(() => {
    goesOn = true;
  });
  while (!goesOn) await server.next();
  server.kill("SIGTERM");
  expect(await server.exited()).toBe(0);
});
