import { describe, expect, test } from "bun:test";
import { AgentError } from "../../../src/guest/agent-error.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { commandEnd } from "./fake-vm-source.ts";
import { CALL, openTable, runRequest } from "./open-table.ts";

async function opened(maxSessions = 2) {
  const { source, table } = openTable({ maxSessions });
  const { sessionId } = await table.open(CALL);
  return { source, table, sessionId, vm: source.lastVm };
}

describe("a checkpoint", () => {
  test("is of the session's own machine", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onCheckpoint = async () => ({ checkpointId: "chk_a", bytesWritten: 5, pausedMs: 1.5 });
    expect(await table.checkpoint(sessionId, CALL)).toEqual({
      checkpointId: "chk_a",
      bytesWritten: 5,
      pausedMs: 1.5,
    });
  });

  test("that fails leaves the session, and says why", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onCheckpoint = () => Promise.reject(new VmError("vmm_failed", "QEMU refused stop"));
    const error = await rejection<SessionError>(table.checkpoint(sessionId, CALL));
    expect(error.code).toBe("checkpoint_failed");
    expect(error.message).toBe(
      `session ${sessionId} goes on, but no checkpoint of it could be made: QEMU refused stop`,
    );
    vm.onRun = () => commandEnd({}, "on");
    expect((await table.run(sessionId, runRequest("x"), CALL)).stdout).toBe("on");
  });

  test("keeps the guest's words out of its error", async () => {
    const { table, sessionId, vm } = await opened();
    const refusal = new AgentError("agent_refused", "x", { refusal: "evil", cause: "evil words" });
    vm.onCheckpoint = () => Promise.reject(refusal);
    const { message } = await rejection<SessionError>(table.checkpoint(sessionId, CALL));
    expect(message).not.toContain("evil");
  });

  test("beyond what the store takes says how to make room", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onCheckpoint = () => Promise.reject(new VmError("checkpoint_cap", "the store is full. Remove one"));
    const error = await rejection<SessionError>(table.checkpoint(sessionId, CALL));
    expect(error).toMatchObject({ code: "checkpoint_cap", message: "the store is full. Remove one" });
  });

  test("is refused for a session that is none", async () => {
    const { table } = await opened();
    expect(await rejection(table.checkpoint("ses_nope", CALL))).toMatchObject({ code: "unknown_session" });
  });

  test("of a session that is closed under it ends with that cause", async () => {
    const { table, sessionId, vm } = await opened();
    vm.onCheckpoint = () => new Promise(() => undefined);
    const taking = table.checkpoint(sessionId, CALL);
    await table.close(sessionId);
    expect(await rejection(taking)).toMatchObject({ code: "session_died" });
  });
});

describe("a fork", () => {
  test("is a session like any other", async () => {
    const { table, source, sessionId } = await opened();
    const forked = await table.fork("chk_a", CALL);
    expect(source.forkedFrom).toEqual(["chk_a"]);
    expect(forked.sessionId).not.toBe(sessionId);
    source.lastVm.onRun = () => commandEnd({}, "from the fork");
    expect((await table.run(forked.sessionId, runRequest("x"), CALL)).stdout).toBe("from the fork");
    await table.close(forked.sessionId);
    expect(source.lastVm.isDisposed).toBe(true);
  });

  test("counts against the cap", async () => {
    const { table, source } = await opened(1);
    expect(await rejection(table.fork("chk_a", CALL))).toMatchObject({ code: "session_cap" });
    expect(source.forkedFrom).toEqual([]);
  });

  test("of an unknown checkpoint says so and frees its slot", async () => {
    const { table, source } = await opened(2);
    source.failure = new VmError("checkpoint_missing", "there is no checkpoint 'x'. Make one");
    const error = await rejection<SessionError>(table.fork("x", CALL));
    expect(error).toMatchObject({
      code: "unknown_checkpoint",
      message: "there is no checkpoint 'x'. Make one",
    });
    source.failure = null;
    await table.fork("chk_a", CALL);
  });

  test("that fails says why", async () => {
    const { table, source } = await opened();
    source.failure = new VmError("base_damaged", "base 'chk_a' is damaged. Remove it");
    const error = await rejection<SessionError>(table.fork("chk_a", CALL));
    expect(error.code).toBe("fork_failed");
    expect(error.message).toBe("no session could be forked: base 'chk_a' is damaged. Remove it");
  });

  test("that is cancelled, or comes too late, leaves nothing", async () => {
    const { table, source } = await opened();
    const cancelled = rejection(table.fork("chk_a", { signal: AbortSignal.abort() }));
    expect(await cancelled).toMatchObject({ code: "cancelled" });
    await table[Symbol.asyncDispose]();
    expect(await rejection(table.fork("chk_a", CALL))).toMatchObject({ code: "shutting_down" });
    expect(source.vms.every((vm) => vm.isDisposed)).toBe(true);
  });
});
