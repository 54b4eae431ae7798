import { expect, test } from "bun:test";
import type { LogFields, Logger } from "../../../src/base/logger.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import { SessionTable } from "../../../src/session/session-table.ts";
import { VmError } from "../../../src/vm/vm-error.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeVmSource } from "./fake-vm-source.ts";
import { CALL, runRequest } from "./open-table.ts";

const ANY = expect.any(Number);
const START_OF_ID = expect.stringMatching(/^ses_.{6}$/);
const TRACES = { vmm_pid: 4711, vmm_stderr: "QEMU's words", console: "the guest's" };

/** A table and everything it logs, by level. */
function loggedTable() {
  const lines: { level: string; fields: LogFields }[] = [];
  const at = (level: string) => (fields: LogFields) => lines.push({ level, fields });
  const log: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const source = new FakeVmSource();
  const table = new SessionTable({ source, maxSessions: 2, idleMs: 600_000, callMs: 0, log });
  const events = (): LogFields[] =>
    lines.filter(({ fields }) => fields["event"]).map(({ level, fields }) => ({ level, ...fields }));
  return { source, table, lines, events };
}

test("every event of a session is one line with its name, the start of the id, and the cause of an end", async () => {
  const { source, table, events } = loggedTable();
  const { sessionId } = await table.open(CALL);
  await table.reset(sessionId, CALL);
  source.lastVm.die({ kind: "guest_panic" });
  const session = sessionId.slice(0, 10);
  await eventually("the end", () => events().length === 3);
  expect(events()).toEqual([
    { level: "info", event: "opened", session },
    { level: "info", event: "reset", session },
    {
      level: "warn",
      event: "ended",
      session,
      cause: "its guest kernel panicked",
      ...TRACES,
      age_ms: ANY,
      runs: 0,
    },
  ]);
});

test("an end that somebody asked for is no warning", async () => {
  const { table, events } = loggedTable();
  const { sessionId } = await table.open(CALL);
  await table.close(sessionId);
  const session = sessionId.slice(0, 10);
  expect(events()[1]).toEqual({ level: "info", event: "ended", session, cause: "it was closed" });
});

test("an end under runs says how many there were", async () => {
  const { source, table, events } = loggedTable();
  const { sessionId } = await table.open(CALL);
  const running = [1, 2].map(() => rejection(table.run(sessionId, runRequest("sleep"), CALL)));
  source.lastVm.die();
  await Promise.all(running);
  expect(events()[1]).toMatchObject({ event: "ended", runs: 2 });
});

/** As of a machine that came up far enough to say something. */
function failure(): VmError {
  const error = new VmError("clone_failed", "the clone ended while it woke");
  error.evidence = { ...TRACES };
  return error;
}

test("an open that fails is one line too, with what the client was told", async () => {
  const { source, table, events } = loggedTable();
  source.failure = failure();
  const { message } = await rejection<SessionError>(table.open(CALL));
  expect(events()).toEqual([
    { level: "warn", event: "open_failed", session: START_OF_ID, cause: message, ...TRACES },
  ]);
});

test("an open that was cancelled says that, and is no warning", async () => {
  const { table, events } = loggedTable();
  const { message } = await rejection<SessionError>(table.open({ signal: AbortSignal.abort() }));
  expect(events()).toEqual([{ level: "info", event: "open_failed", session: START_OF_ID, cause: message }]);
});

test("a reset that fails is an end with its reason", async () => {
  const { source, table, events } = loggedTable();
  const { sessionId } = await table.open(CALL);
  source.failure = failure();
  await rejection(table.reset(sessionId, CALL));
  const cause = "its reset failed: the clone ended while it woke";
  const session = sessionId.slice(0, 10);
  expect(events()[1]).toEqual({ level: "warn", event: "ended", session, cause, ...TRACES });
});

test("a cause is short in the log and has nothing in it that steers a terminal", async () => {
  const { source, table, events } = loggedTable();
  source.failure = new Error(`\x1b[2J${"x".repeat(5000)}`);
  await rejection(table.open(CALL));
  const cause = String(events()[0]!["cause"]);
  expect(cause).toStartWith("no session could be opened: \\x1b[2Jxxx");
  expect(cause).toHaveLength(2048);
});

test("no line has a whole id, which is a key", async () => {
  const { table, lines } = loggedTable();
  const { sessionId } = await table.open(CALL);
  await table.reset(sessionId, CALL);
  await table.close(sessionId);
  expect(lines.length).toBeGreaterThan(5);
  expect(JSON.stringify(lines)).not.toContain(sessionId);
});
