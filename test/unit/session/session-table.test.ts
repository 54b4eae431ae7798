import { describe, expect, test } from "bun:test";
import { AgentError } from "../../../src/guest/agent-error.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { commandEnd, type FakeVmSource } from "./fake-vm-source.ts";
import { CALL, openTable, runRequest } from "./open-table.ts";

async function opened(options: Parameters<typeof openTable>[0] = {}) {
  const { source, table } = openTable(options);
  const { sessionId } = await table.open(CALL);
  return { source, table, sessionId, vm: source.lastVm };
}

function undisposed(source: FakeVmSource): number {
  return source.vms.filter((vm) => !vm.isDisposed).length;
}

describe("a session", () => {
  test("runs commands and writes files on its own machine", async () => {
    const { table, sessionId, vm, source } = await opened();
    await table.open(CALL);
    vm.onRun = ({ command }) => commandEnd({}, `ran ${Buffer.from(command)}`);
    const stdin = new Uint8Array([1]);
    const result = await table.run(sessionId, runRequest("é", { timeoutMs: 5, cwd: "a", stdin }), CALL);
    expect(result).toMatchObject({ stdout: "ran é", exitCode: 0 });
    await table.writeFile(sessionId, "/f", new Uint8Array([7]), CALL);
    expect(vm.puts).toEqual([{ path: "/f", content: new Uint8Array([7]) }]);
    expect(source.lastVm.puts).toEqual([]);
  });

  test("hands the machine the request's own limits", async () => {
    const { table, sessionId, vm } = await opened();
    const running = table.run(
      sessionId,
      runRequest("c", { timeoutMs: 5, cwd: "a", maxOutputBytes: 77 }),
      CALL,
    );
    const { command, end } = vm.runs[0]!;
    expect(command).toMatchObject({ timeoutMs: 5, cwd: "a", stdin: null, maxOutputBytes: 77 });
    end.resolve(commandEnd());
    await running;
  });

  test("explains what the guest refuses", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onRun = () => {
      throw new AgentError("agent_refused", "x", { refusal: "bad_cwd" });
    };
    vm.onPut = async () => {
      throw new AgentError("agent_refused", "x", { refusal: "no_space" });
    };
    const request = { ...runRequest("x"), cwd: "/no" };
    expect((await rejection<SessionError>(table.run(sessionId, request, CALL))).message).toContain(
      "cwd '/no'",
    );
    const writing = table.writeFile(sessionId, "/big", new Uint8Array(1), CALL);
    expect(await rejection<SessionError>(writing)).toMatchObject({ code: "no_space" });
  });

  test("that is closed gives up its machine and says afterwards that it was closed", async () => {
    const { table, sessionId, vm } = await opened();
    await table.close(sessionId);
    expect(vm.isDisposed).toBe(true);
    for (const call of [
      () => table.run(sessionId, runRequest("x"), CALL),
      () => table.writeFile(sessionId, "/f", new Uint8Array(0), CALL),
      () => table.reset(sessionId, CALL),
      () => table.close(sessionId),
    ]) {
      const error = await rejection<SessionError>(call());
      expect(error.code).toBe("dead_session");
      expect(error.message).toBe(
        `session ${sessionId} has ended: it was closed. Open a new one with open_session.`,
      );
    }
  });

  test("that never was is unknown, and named", async () => {
    const { table } = openTable();
    const error = await rejection<SessionError>(table.run("ses_nope", runRequest("x"), CALL));
    expect(error.code).toBe("unknown_session");
    expect(error.message).toContain("'ses_nope'. Open one with open_session");
  });

  test("that is closed under a run ends the run with the reason", async () => {
    const { table, sessionId } = await opened();
    const running = table.run(sessionId, runRequest("sleep"), CALL);
    await table.close(sessionId);
    const error = await rejection<SessionError>(running);
    expect(error).toMatchObject({ code: "session_died" });
    expect(error.message).toContain("it was closed");
  });

  test("keeps its machine when a run is cancelled", async () => {
    const { table, sessionId, vm } = await opened();
    const caller = new AbortController();
    const running = table.run(sessionId, runRequest("sleep"), { signal: caller.signal });
    caller.abort();
    expect(await rejection<SessionError>(running)).toMatchObject({ code: "cancelled" });
    vm.onRun = () => commandEnd({}, "alive");
    expect((await table.run(sessionId, runRequest("x"), CALL)).stdout).toBe("alive");
  });
});

describe("the cap", () => {
  test("refuses one more, naming itself and the way out", async () => {
    const { table, source } = openTable({ maxSessions: 2 });
    await Promise.all([table.open(CALL), table.open(CALL)]);
    const error = await rejection<SessionError>(table.open(CALL));
    expect(error.code).toBe("session_cap");
    expect(error.message).toContain("all 2 sessions are in use. Close one");
    expect(error.message).toContain("IGN_MCP_MAX_SESSIONS");
    expect(source.claims).toBe(2);
  });

  test("counts opens that are still under way", async () => {
    const { table } = openTable({ maxSessions: 1 });
    const opening = table.open(CALL);
    expect(await rejection<SessionError>(table.open(CALL))).toMatchObject({ code: "session_cap" });
    await opening;
  });

  test("has room again at once after a close, a death, or a failed open", async () => {
    const { table, source } = openTable({ maxSessions: 1 });
    source.failure = new Error("no base");
    await rejection(table.open(CALL));
    source.failure = null;
    const { sessionId } = await table.open(CALL);
    source.lastVm.beforeDisposed = new Promise(() => undefined);
    void table.close(sessionId);
    await table.open(CALL);
    source.lastVm.beforeDisposed = new Promise(() => undefined);
    source.lastVm.die();
    await Bun.sleep(1);
    await table.open(CALL);
  });
});

describe("an open", () => {
  test("under way is in no list, since no call takes its id", async () => {
    const { table, source } = openTable();
    const gate = Promise.withResolvers<void>();
    source.gate = gate.promise;
    const opening = table.open(CALL);
    expect(table.list()).toEqual([]);
    gate.resolve();
    const { sessionId } = await opening;
    expect(table.list().map((session) => session.sessionId)).toEqual([sessionId]);
  });

  test("that fails says why and leaves nothing", async () => {
    const { table, source } = openTable();
    source.failure = new VmError("base_damaged", "base 'x' is damaged. Rebuild it");
    const error = await rejection<SessionError>(table.open(CALL));
    expect(error).toMatchObject({ code: "open_failed", cause: source.failure });
    expect(error.message).toBe("no session could be opened: base 'x' is damaged. Rebuild it");
    expect(undisposed(source)).toBe(0);
  });

  test.each([false, true])(
    "that is cancelled leaves nothing (machine came all the same: %p)",
    async (late) => {
      const { table, source } = openTable({ maxSessions: 1 });
      const gate = Promise.withResolvers<void>();
      source.gate = gate.promise;
      source.ignoresAbort = late;
      const caller = new AbortController();
      const opening = table.open({ signal: caller.signal });
      caller.abort();
      gate.resolve();
      expect(await rejection<SessionError>(opening)).toMatchObject({ code: "cancelled" });
      expect(source.vms.length).toBe(late ? 1 : 0);
      expect(undisposed(source)).toBe(0);
      await table.open(CALL);
    },
  );

  test("passes on its progress", async () => {
    const { table, source } = openTable();
    const seen: unknown[] = [];
    const claim = source.claim.bind(source);
    source.claim = (call) => {
      seen.push(call);
      return claim(call);
    };
    const progress = () => undefined;
    await table.open({ ...CALL, progress });
    expect(seen).toEqual([{ ...CALL, progress }]);
  });
});
