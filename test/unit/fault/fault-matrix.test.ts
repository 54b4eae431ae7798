import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SessionError } from "../../../src/session/session-error.ts";
import { REPLY_FAULTS, type ReplyFault } from "../../fake-vmm/agent-fault.ts";
import { eventually } from "../../support/eventually.ts";
import { openDescriptors } from "../../support/processes.ts";
import { rejection } from "../../support/rejection.ts";
import { CALL, runRequest } from "../session/open-table.ts";
import { REPLY_CAUSES, START_FAULTS } from "./fault-cases.ts";
import { FaultyTable } from "./faulty-table.ts";

/** More than the initial credit and a socket's buffer hold, so that a reset finds bytes unread */
const LARGE = new Uint8Array(2_000_000);
const SMALL = new Uint8Array(1000);
/** For the one fault that only a deadline ends; the run that arms it must keep to it too */
const SILENCE = { exitGraceMs: 3000, transferMs: 3000 };

let descriptorsBefore = 0;
beforeAll(async () => {
  await using faulty = new FaultyTable();
  await faulty.expectFreeSlot();
  descriptorsBefore = openDescriptors(process.pid);
});
afterAll(async () => {
  await eventually("all descriptors are closed", () => {
    Bun.gc(true); // streams that nobody holds any more close theirs only now
    return openDescriptors(process.pid) <= descriptorsBefore;
  });
});

describe("a clone that comes up with", () => {
  test.concurrent.each(START_FAULTS.map((each) => [each.name, each] as const))(
    "%s fails its open with the reason, and the slot is free",
    async (_, { options, says, deadlines }) => {
      await using faulty = new FaultyTable();
      faulty.source.next(options, deadlines);
      const error = await rejection<SessionError>(faulty.open());
      expect(error.code).toBe("open_failed");
      expect(error.message).toContain(says);
      expect(error.message).toContain(". Try again; if that fails too, ignition-mcp doctor");
      expect(faulty.source.vmms()).toEqual([]);
      await faulty.expectFreeSlot();
    },
  );

  test.concurrent.each(START_FAULTS.map((each) => [each.name, each] as const))(
    "%s fails a reset with the reason, the session is dead, and the slot is free",
    async (_, { options, says, deadlines }) => {
      await using faulty = new FaultyTable();
      const sessionId = await faulty.open();
      faulty.source.next(options, deadlines);
      const error = await rejection<SessionError>(faulty.table.reset(sessionId, CALL));
      expect(error.code).toBe("reset_failed");
      expect(error.message).toContain(says);
      expect(error.message).toContain(". Open a new one with open_session; if that fails too,");
      const later = await rejection<SessionError>(faulty.table.run(sessionId, runRequest("echo x"), CALL));
      expect(later).toMatchObject({ code: "dead_session" });
      expect(later.message).toContain("its reset failed: ");
      expect(later.message).toContain(says);
      expect(faulty.source.vmms()).toEqual([]);
      await faulty.expectFreeSlot();
    },
  );
});

describe("an answer with", () => {
  const calls: Record<
    string,
    (faulty: FaultyTable, sessionId: string, content: Uint8Array, timeoutMs: number) => Promise<unknown>
  > = {
    run: ({ table }, sessionId, stdin, timeoutMs) =>
      table.run(sessionId, { ...runRequest("echo x"), timeoutMs, stdin }, CALL),
    write_file: ({ table }, sessionId, content) => table.writeFile(sessionId, "/x", content, CALL),
  };
  const cases = REPLY_FAULTS.flatMap((fault) => Object.keys(calls).map((call) => [fault, call] as const));

  test.concurrent.each(cases)(
    "%s ends a %s and its session with the cause, and frees the slot",
    async (fault, call) => {
      await using faulty = new FaultyTable();
      const isSilent = fault === "silent";
      if (isSilent) faulty.source.next({}, SILENCE);
      const sessionId = await faulty.openArmed(fault);
      const content = fault === "resets" ? LARGE : SMALL;
      const error = await rejection<SessionError>(
        calls[call]!(faulty, sessionId, content, isSilent ? 100 : 60_000),
      );
      expect(error.code).toBe("session_died");
      expect(error.message).toContain(REPLY_CAUSES[fault]);
      const later = await rejection<SessionError>(faulty.table.close(sessionId));
      expect(later.code).toBe("dead_session");
      expect(later.message).toContain(REPLY_CAUSES[fault]);
      await faulty.expectFreeSlot();
    },
  );
});

describe("under an answer with", () => {
  const ends: Record<string, { end(faulty: FaultyTable, sessionId: string): Promise<void>; says: string }> = {
    reset: {
      end: ({ table }, sessionId) => table.reset(sessionId, CALL),
      says: "was reset during this call",
    },
    close: { end: ({ table }, sessionId) => table.close(sessionId), says: "it was closed" },
    shutdown: { end: ({ table }) => table[Symbol.asyncDispose](), says: "the server shut down" },
  };
  const cases = REPLY_FAULTS.flatMap((fault) => Object.keys(ends).map((end) => [fault, end] as const));

  async function endUnderFault(fault: ReplyFault, { end, says }: (typeof ends)[string]): Promise<void> {
    await using faulty = new FaultyTable();
    const sessionId = await faulty.openArmed(fault);
    const running = rejection<SessionError>(faulty.table.run(sessionId, runRequest("echo x"), CALL));
    await end(faulty, sessionId);
    const error = await running;
    expect(error.code).toBe("session_died");
    expect(error.message).toContain(says);
  }

  test.concurrent.each(cases)("%s a %s goes through, and the call says so", async (fault, end) => {
    await endUnderFault(fault, ends[end]!);
  });

  test.concurrent.each(REPLY_FAULTS.map((fault) => [fault]))(
    "%s a reset gives a session that works",
    async (fault) => {
      await using faulty = new FaultyTable();
      const sessionId = await faulty.openArmed(fault);
      const running = rejection(faulty.table.run(sessionId, runRequest("echo x"), CALL));
      await faulty.table.reset(sessionId, CALL);
      await running;
      expect(await faulty.table.run(sessionId, runRequest("echo anew"), CALL)).toMatchObject({
        stdout: "anew",
      });
    },
  );
});

test("an OK that comes late, but in time, opens the session", async () => {
  await using faulty = new FaultyTable();
  faulty.source.next({ fault: "slow_ok", okAfterMs: 100 });
  const sessionId = await faulty.open();
  expect(await faulty.table.run(sessionId, runRequest("echo late"), CALL)).toMatchObject({ stdout: "late" });
});
