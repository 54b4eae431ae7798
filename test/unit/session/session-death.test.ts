import { describe, expect, test } from "bun:test";
import { AgentError } from "../../../src/guest/agent-error.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import type { VmDeath } from "../../../src/vm/vm-death.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { commandEnd } from "./fake-vm-source.ts";
import { CALL, openTable, runRequest } from "./open-table.ts";

async function opened(options: Parameters<typeof openTable>[0] = {}) {
  const { source, table } = openTable(options);
  const { sessionId } = await table.open(CALL);
  return { source, table, sessionId, vm: source.lastVm };
}

describe("the death of a machine", () => {
  const deaths: [VmDeath, string][] = [
    [{ kind: "vmm_exited", end: { exitCode: null, signal: "SIGKILL" } }, "its VMM was killed (SIGKILL)"],
    [{ kind: "vmm_exited", end: { exitCode: 1, signal: null } }, "its VMM exited (status 1)"],
    [{ kind: "guest_panic" }, "its guest kernel panicked"],
    [{ kind: "guest_stopped" }, "its guest was shut down or rebooted from inside"],
    [{ kind: "agent_lost" }, "the agent in its guest closed the connection"],
    [{ kind: "agent_invalid" }, "the agent in its guest broke the protocol"],
    [{ kind: "agent_silent" }, "the agent in its guest stopped answering"],
  ];
  test.each(deaths)(
    "%j ends the run on it with the cause, and every later call too",
    async (death, cause) => {
      const { table, sessionId, vm } = await opened();
      const running = table.run(sessionId, runRequest("sleep"), CALL);
      vm.die(death);
      const error = await rejection<SessionError>(running);
      expect(error.code).toBe("session_died");
      expect(error.message).toBe(
        `session ${sessionId} ended during this call: ${cause}. Open a new one with open_session.`,
      );
      const later = await rejection<SessionError>(table.run(sessionId, runRequest("x"), CALL));
      expect(later.code).toBe("dead_session");
      expect(later.message).toContain(`${sessionId} has ended: ${cause}. Open`);
      await eventually("the disposal", () => vm.isDisposed);
    },
  );

  test("explains an agent that was lost just before", async () => {
    const { table, sessionId, vm } = await opened();
    const running = table.run(sessionId, runRequest("sleep"), CALL);
    vm.runs[0]!.end.reject(new AgentError("agent_lost", "the connection ended"));
    await Bun.sleep(5);
    vm.die({ kind: "vmm_exited", end: { exitCode: null, signal: "SIGSEGV" } });
    const error = await rejection<SessionError>(running);
    expect(error).toMatchObject({ code: "session_died" });
    expect(error.message).toContain("its VMM was killed (SIGSEGV)");
  });

  test("after the session was closed changes nothing", async () => {
    const { table, sessionId, vm } = await opened();
    await table.close(sessionId);
    vm.die();
    await Bun.sleep(1);
    const error = await rejection<SessionError>(table.close(sessionId));
    expect(error.message).toContain("it was closed");
  });
});

describe("reset", () => {
  test("replaces the machine under the same id", async () => {
    const { table, sessionId, vm, source } = await opened();
    await table.reset(sessionId, CALL);
    expect(vm.isDisposed).toBe(true);
    expect(source.vms).toHaveLength(2);
    source.lastVm.onRun = () => commandEnd({}, "fresh");
    expect((await table.run(sessionId, runRequest("x"), CALL)).stdout).toBe("fresh");
    vm.die();
    await Bun.sleep(1);
    expect((await table.run(sessionId, runRequest("x"), CALL)).stdout).toBe("fresh");
    source.lastVm.die();
    await eventually("the disposal", () => source.lastVm.isDisposed);
    expect(await rejection(table.run(sessionId, runRequest("x"), CALL))).toMatchObject({
      code: "dead_session",
    });
  });

  test("ends a run in flight with an error that says so", async () => {
    const { table, sessionId } = await opened();
    const running = table.run(sessionId, runRequest("sleep"), CALL);
    await table.reset(sessionId, CALL);
    const error = await rejection<SessionError>(running);
    expect(error.code).toBe("session_died");
    expect(error.message).toContain(
      `session ${sessionId} was reset during this call, and its files are gone`,
    );
  });

  test("under way makes the session busy", async () => {
    const { table, sessionId, source } = await opened();
    const gate = Promise.withResolvers<void>();
    source.gate = gate.promise;
    const resetting = table.reset(sessionId, CALL);
    for (const call of [table.run(sessionId, runRequest("x"), CALL), table.reset(sessionId, CALL)]) {
      const error = await rejection<SessionError>(call);
      expect(error).toMatchObject({ code: "session_busy" });
      expect(error.message).toContain(`${sessionId} is resetting. Wait`);
    }
    gate.resolve();
    await resetting;
  });

  test("that fails leaves the session dead, its slot free, and its machine gone", async () => {
    const { table, sessionId, vm, source } = await opened({ maxSessions: 1 });
    source.failure = new Error("QEMU did not start");
    const error = await rejection<SessionError>(table.reset(sessionId, CALL));
    expect(error.code).toBe("reset_failed");
    expect(error.message).toContain(
      `session ${sessionId} could not be reset and is closed: QEMU did not start. Open a new one with open_session; if`,
    );
    expect(vm.isDisposed).toBe(true);
    const later = await rejection<SessionError>(table.run(sessionId, runRequest("x"), CALL));
    expect(later.message).toContain("has ended: its reset failed: QEMU did not start. Open a new one");
    source.failure = null;
    await table.open(CALL);
  });

  test("goes through when the caller gives up meanwhile, and does not start when they did before", async () => {
    const { table, sessionId, vm, source } = await opened();
    const aborted = { signal: AbortSignal.abort() };
    expect(await rejection(table.reset(sessionId, aborted))).toMatchObject({ code: "cancelled" });
    expect(vm.isDisposed).toBe(false);
    const caller = new AbortController();
    const resetting = table.reset(sessionId, { signal: caller.signal });
    caller.abort();
    await resetting;
    source.lastVm.onRun = () => commandEnd({}, "fresh");
    expect((await table.run(sessionId, runRequest("x"), CALL)).stdout).toBe("fresh");
  });

  test("of a session that is closed meanwhile says so, and leaves no machine", async () => {
    const { table, sessionId, source } = await opened();
    const gate = Promise.withResolvers<void>();
    source.gate = gate.promise;
    const resetting = table.reset(sessionId, CALL);
    await table.close(sessionId);
    gate.resolve();
    const error = await rejection<SessionError>(resetting);
    expect(error).toMatchObject({ code: "dead_session" });
    expect(error.message).toContain("it was closed");
    expect(source.vms.map((vm) => vm.isDisposed)).toEqual([true, true]);
  });

  test("onto a machine that is dead already leaves the session dead with that cause", async () => {
    const { table, sessionId, source } = await opened();
    const claim = source.claim.bind(source);
    source.claim = async (call) => {
      const vm = await claim(call);
      vm.die({ kind: "guest_panic" });
      return vm;
    };
    await table.reset(sessionId, CALL);
    await eventually("the disposal", () => source.lastVm.isDisposed);
    const error = await rejection<SessionError>(table.run(sessionId, runRequest("x"), CALL));
    expect(error.message).toContain("its guest kernel panicked");
  });
});
