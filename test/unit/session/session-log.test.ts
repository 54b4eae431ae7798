import { expect, test } from "bun:test";
import type { LogFields, Logger } from "../../../src/base/logger.ts";
import { SessionTable } from "../../../src/session/session-table.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeVmSource } from "./fake-vm-source.ts";
import { CALL } from "./open-table.ts";

/** A table and everything it logs, by level. */
function loggedTable() {
  const lines: { level: string; fields: LogFields }[] = [];
  const at = (level: string) => (fields: LogFields) => lines.push({ level, fields });
  const log: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const source = new FakeVmSource();
  const table = new SessionTable({ source, maxSessions: 2, idleMs: 600_000, callMs: 0, log });
  const events = () => lines.filter(({ level }) => level === "info").map(({ fields }) => fields);
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
    { event: "opened", session },
    { event: "reset", session },
    { event: "ended", session, cause: "its guest kernel panicked" },
  ]);
});

test("an open that fails is one line too", async () => {
  const { source, table, events } = loggedTable();
  source.failure = new Error("QEMU did not start");
  await rejection(table.open(CALL));
  expect(events()).toEqual([
    { event: "open_failed", session: expect.stringMatching(/^ses_.{6}$/), cause: "QEMU did not start" },
  ]);
});

test("no line has a whole id, which is a key", async () => {
  const { table, lines } = loggedTable();
  const { sessionId } = await table.open(CALL);
  await table.reset(sessionId, CALL);
  await table.close(sessionId);
  expect(lines.length).toBeGreaterThan(5);
  expect(JSON.stringify(lines)).not.toContain(sessionId);
});
