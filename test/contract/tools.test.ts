import { afterEach, beforeEach, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import packageJson from "../../package.json" with { type: "json" };
import { LazySessions } from "../../src/mcp/lazy-sessions.ts";
import { createMcpServer } from "../../src/mcp/server.ts";
import { SessionTools } from "../../src/mcp/session-tools.ts";
import { FakeSessions } from "./fake-sessions.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
let client: Client;
let made: number;

beforeEach(async () => {
  made = 0;
  const sessions = new LazySessions(async () => {
    made += 1;
    return new FakeSessions();
  });
  const facts = { idleMs: 600_000, net: false, egress: { kind: "deny_all" }, tools: "all" } as const;
  const server = createMcpServer(new SessionTools(facts, sessions, SILENT), SILENT);
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  client = new Client({ name: "contract", version: "1" });
  await Promise.all([server.connect(serverSide), client.connect(clientSide)]);
  await client.listTools(); // from here on the client holds every result against the tool's outputSchema
});
afterEach(() => client.close());

async function call(name: string, args: Record<string, unknown> = {}) {
  const result = (await client.callTool({ name, arguments: args })) as CallToolResult;
  const [block, ...more] = result.content;
  if (block?.type !== "text" || more.length > 0) throw new Error("not one block of text");
  return { text: block.text, fields: result.structuredContent, failed: result.isError === true };
}

async function openSession(): Promise<string> {
  return (await call("open_session")).fields?.["session_id"] as string;
}

test("the server says who it is, what it can do and how to use it in four sentences", () => {
  expect(client.getServerVersion()).toEqual({ name: "ignition-mcp", version: packageJson.version });
  expect(client.getServerCapabilities()).toEqual({ tools: {} });
  expect(client.getInstructions()?.split(/(?<=\.) /).length).toBeLessThanOrEqual(4);
});

test("nothing is made for the handshake, the list or a call whose arguments are wrong", async () => {
  expect((await call("run", { session_id: 1 })).failed).toBe(true);
  expect(made).toBe(0);
});

test("open_session gives the id as JSON text and as structure, and ignores what clients add", async () => {
  expect(await call("open_session", { random_string: "dummy" })).toEqual({
    text: '{"session_id":"ses_1"}',
    fields: { session_id: "ses_1" },
    failed: false,
  });
});

test("run gives all fields as JSON text and as structure", async () => {
  const session_id = await openSession();
  const { text, fields, failed } = await call("run", { session_id, command: "echo hi" });
  expect(failed).toBe(false);
  expect(fields).toEqual({
    stdout: "hi\n",
    stderr: "",
    exit_code: 0,
    timed_out: false,
    duration_ms: 0.5,
    stdout_bytes: 3,
    stderr_bytes: 0,
    stdout_truncated: false,
    stderr_truncated: false,
  });
  expect(JSON.parse(text)).toEqual(fields);
});

test("a non-zero exit and a signal are results, not failures", async () => {
  const session_id = await openSession();
  expect(await call("run", { session_id, command: "no-such-thing" })).toMatchObject({
    failed: false,
    fields: { exit_code: 127, stderr: "sh: no-such-thing: not found\n" },
  });
  expect(await call("run", { session_id, command: "killed" })).toMatchObject({
    failed: false,
    fields: { exit_code: -9, signal: "SIGKILL" },
  });
});

test("cut output names the file that has all of it", async () => {
  const session_id = await openSession();
  const { fields } = await call("run", { session_id, command: "big 10" });
  expect(fields).toMatchObject({
    stdout_truncated: true,
    stdout_bytes: 1_000_000,
    stdout_path: "/tmp/run.out",
    stderr_truncated: false,
  });
  expect(fields).not.toHaveProperty("stderr_path");
});

test("timeout, directory and output limit have defaults and reach the session", async () => {
  const session_id = await openSession();
  const where = async (more: Record<string, unknown>) =>
    JSON.parse((await call("run", { session_id, command: "where", ...more })).fields?.["stdout"] as string);
  const byDefault = { cwd: null, timeoutMs: 30_000, maxOutputBytes: 32_768 };
  expect(await where({})).toEqual(byDefault);
  expect(await where({ cwd: null, timeout_s: null, max_output_bytes: null, run_id: "" })).toEqual(byDefault);
  const given = { cwd: "/tmp", timeoutMs: 250, maxOutputBytes: 0 };
  expect(await where({ cwd: "/tmp", timeout_s: 0.25, max_output_bytes: 0 })).toEqual(given);
});

test("stdin is given as bytes, and none is not the same as empty", async () => {
  const session_id = await openSession();
  const stdout = async (more: Record<string, unknown>) =>
    (await call("run", { session_id, command: "stdin", ...more })).fields?.["stdout"];
  expect(await stdout({})).toBe("no stdin");
  expect(await stdout({ stdin: null })).toBe("no stdin");
  expect(await stdout({ stdin: "" })).toBe("got 0 bytes");
  expect(await stdout({ stdin: "é\n" })).toBe("got 3 bytes");
});

test("what a run ran out of is told, with a sentence, and only then", async () => {
  const session_id = await openSession();
  const { fields } = await call("run", { session_id, command: "starve" });
  expect(fields).toMatchObject({ oom_killed: true, disk_full: true, too_many_processes: true });
  expect(fields?.["note"]).toContain("ran out of memory");
  const fine = (await call("run", { session_id, command: "echo fine" })).fields;
  for (const name of ["oom_killed", "disk_full", "too_many_processes", "note", "stdout_invalid_utf8"])
    expect(fine).not.toHaveProperty(name);
});

test("a run that goes on has an id and a cursor, and no end", async () => {
  const session_id = await openSession();
  const { fields, text, failed } = await call("run", { session_id, command: "long", background: true });
  expect(failed).toBe(false);
  expect(fields).toEqual({
    running: true,
    run_id: "run_1",
    stdout: "true",
    stderr: "",
    note: "It still runs: pass run_id to poll, or to run where there is no poll.",
    cursor: "4:0",
    more: true,
    stdout_bytes: 9,
    stderr_bytes: 0,
    stdout_path: "/run/out",
  });
  expect(JSON.parse(text)).toEqual(fields);
});

test("run with a run_id waits on, whatever else is passed along", async () => {
  const session_id = await openSession();
  const args = { session_id, command: "", run_id: "run_1", timeout_s: null };
  expect((await call("run", args)).fields).toMatchObject({ stdout: "waited for run_1", exit_code: 0 });
});

test("poll hands its arguments on, with defaults, and tells the end", async () => {
  const session_id = await openSession();
  const shown = async (more: Record<string, unknown>) => {
    const { fields } = await call("poll", { session_id, run_id: "run_1", ...more });
    expect(fields).toMatchObject({ running: false, run_id: "run_1", exit_code: 7, cursor: "4:0" });
    expect(fields).not.toHaveProperty("note");
    expect(fields).not.toHaveProperty("stdout_path");
    return JSON.parse(fields?.["stdout"] as string);
  };
  const byDefault = { cursor: null, waitMs: 10_000, stdin: null, endsInput: false, signal: null };
  expect(await shown({})).toEqual(byDefault);
  expect(await shown({ stdin: "", cursor: "", wait_s: null })).toEqual(byDefault);
  const given = { cursor: "1:2", wait_s: 0, stdin: "é", stdin_eof: true, signal: "SIGTERM" };
  expect(await shown(given)).toEqual({ cursor: "1:2", waitMs: 0, stdin: "é", endsInput: true, signal: 15 });
});

test.each([
  [{ wait_s: 51 }, "wait_s is 51. Pass a number from 0 to 50"],
  [{ signal: "STOPPED" }, 'signal "STOPPED" is none.'],
  [{ stdin_eof: "yes" }, "stdin_eof must be true or false, not text."],
  [{ run_id: 7 }, "run_id must be text, not a number."],
])("poll refuses %j", async (args, complaint) => {
  const session_id = await openSession();
  const { text, failed } = await call("poll", { session_id, run_id: "run_1", ...args });
  expect(failed).toBe(true);
  expect(text).toStartWith(`bad_argument: ${complaint}`);
});

test("read_file hands its range on and says what is left", async () => {
  const session_id = await openSession();
  const { fields } = await call("read_file", { session_id, path: "/a", start_line: 2 });
  expect(fields).toMatchObject({ invalid_utf8: true, offset: 1, bytes: 2, file_bytes: 10, left_bytes: 7 });
  const lines = { first: 2, last: null };
  const range = { path: "/a", encoding: "text", maxBytes: 32_768, offset: 0, lines };
  expect(JSON.parse(fields?.["content"] as string)).toEqual(range);
});

test.each([
  [{ offset: 1, end_line: 2 }, "offset goes with bytes"],
  [{ start_line: 3, end_line: 2 }, "end_line is before start_line."],
  [{ start_line: 0 }, "start_line is 0. Pass a whole number from 1"],
  [{ max_bytes: 1.5 }, "max_bytes is 1.5. Pass a whole number from 1 to 1048576"],
  [{ encoding: "hex" }, 'encoding is "hex". Pass text or base64'],
])("read_file refuses %j", async (args, complaint) => {
  const session_id = await openSession();
  const { text, failed } = await call("read_file", { session_id, path: "/a", ...args });
  expect(failed).toBe(true);
  expect(text).toStartWith(`bad_argument: ${complaint}`);
});

test("list_sessions tells of each session its use, and when it is closed if there is none", async () => {
  expect((await call("list_sessions")).fields).toEqual({ sessions: [] });
  await openSession();
  await openSession();
  expect((await call("list_sessions", { random_string: "dummy" })).fields).toEqual({
    sessions: [
      { session_id: "ses_1", state: "ready", age_s: 61, idle_s: 1.6, runs: 0, closes_in_s: 598.5 },
      { session_id: "ses_2", state: "ready", age_s: 61, idle_s: 0, runs: 2 },
    ],
  });
});

test("write_file, reset and close answer ok, as the seed does", async () => {
  const session_id = await openSession();
  const ok = { text: "ok", fields: { result: "ok" }, failed: false };
  const content_base64 = btoa("hello");
  expect(await call("write_file", { session_id, path: "/a", content_base64 })).toEqual(ok);
  expect((await call("run", { session_id, command: "cat /a" })).fields).toMatchObject({ stdout: "hello" });
  expect(await call("reset", { session_id })).toEqual(ok);
  expect((await call("run", { session_id, command: "cat /a" })).fields).toMatchObject({ exit_code: 1 });
  expect(await call("close", { session_id })).toEqual(ok);
});

test.each([
  ["run", { command: "true" }],
  ["write_file", { path: "/a", content_base64: "" }],
  ["reset", {}],
  ["close", {}],
  ["checkpoint", {}],
])("%s with an unknown session_id is an error that names it", async (tool, args) => {
  const { text, fields, failed } = await call(tool, { ...args, session_id: "ses_404" });
  expect(failed).toBe(true);
  expect(text).toBe("unknown_session: There is no session ses_404. Start one with open_session.");
  expect(fields).toEqual({
    error: {
      code: "unknown_session",
      message: "There is no session ses_404. Start one with open_session.",
      retryable: false,
    },
  });
});

test("checkpoint and fork pass ids and figures, and the fork has the files", async () => {
  const session_id = await openSession();
  await call("write_file", { session_id, path: "/f", content_base64: "a2VwdA==" });
  const taken = await call("checkpoint", { session_id });
  expect(taken.fields).toEqual({ checkpoint_id: "chk_1", bytes_written: 1234, paused_ms: 1.5 });
  const forked = await call("fork", { checkpoint_id: "chk_1" });
  const fork_id = forked.fields?.["session_id"] as string;
  expect(fork_id).not.toBe(session_id);
  expect((await call("run", { session_id: fork_id, command: "cat /f" })).fields?.["stdout"]).toBe("kept");
  const unknown = await call("fork", { checkpoint_id: "chk_2" });
  expect(unknown).toMatchObject({ failed: true, text: expect.stringContaining("unknown_checkpoint: ") });
  for (const wrong of [undefined, "", "x".repeat(200), 7])
    expect((await call("fork", { checkpoint_id: wrong })).text).toStartWith("bad_argument: checkpoint_id");
});

test("wrong arguments are an error of the tool that says what to pass", async () => {
  const { text, failed } = await call("run", { session_id: "ses_1", command: "true", timeout_s: 3601 });
  expect(failed).toBe(true);
  expect(text).toStartWith("bad_argument: timeout_s is 3601. Pass a number from 0.001 to 3600");
});

test("an unknown tool is a JSON-RPC error that lists the tools", async () => {
  await expect(call("fetch")).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("open_session, run, write_file, reset, close"),
  });
});

test("the official client gets progress and can cancel", async () => {
  const session_id = await openSession();
  const messages: unknown[] = [];
  const args = { name: "run", arguments: { session_id, command: "progress" } };
  await client.callTool(args, undefined, { onprogress: ({ message }) => void messages.push(message) });
  expect(messages).toEqual(["first"]);
  const abort = new AbortController();
  const hanging = { name: "run", arguments: { session_id, command: "hang" } };
  const cancelled = client.callTool(hanging, undefined, { signal: abort.signal });
  abort.abort("enough");
  await expect(cancelled).rejects.toThrow("enough");
  expect((await call("run", { session_id, command: "echo on" })).failed).toBe(false);
});
