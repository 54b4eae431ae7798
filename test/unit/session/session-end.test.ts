import { describe, expect, test } from "bun:test";
import type { SessionError } from "../../../src/session/session-error.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { commandEnd } from "./fake-vm-source.ts";
import { CALL, openTable, runRequest } from "./open-table.ts";

describe("idle sessions", () => {
  test("are closed, and say after how many seconds", async () => {
    const { table, source } = openTable({ idleMs: 40 });
    const { sessionId } = await table.open(CALL);
    await eventually("the reaper", () => source.lastVm.isDisposed);
    const error = await rejection<SessionError>(table.run(sessionId, runRequest("x"), CALL));
    expect(error.code).toBe("dead_session");
    expect(error.message).toContain("it was closed after 0.04 s without use");
    await table[Symbol.asyncDispose]();
  });

  test("are not those with a call in flight, however long it takes", async () => {
    const { table, source } = openTable({ idleMs: 20 });
    const { sessionId } = await table.open(CALL);
    const vm = source.lastVm;
    const running = table.run(sessionId, runRequest("sleep"), CALL);
    await table.open(CALL);
    const idle = source.lastVm;
    await eventually("the reaper to have passed", () => idle.isDisposed);
    expect(vm.isDisposed).toBe(false);
    vm.runs[0]!.end.resolve(commandEnd({}, "done"));
    expect((await running).stdout).toBe("done");
    await eventually("the reaper", () => vm.isDisposed);
    await table[Symbol.asyncDispose]();
  });
});

describe("shutdown", () => {
  test("disposes of every machine and the source, and ends calls in flight", async () => {
    const { table, source } = openTable({ maxSessions: 3 });
    const opened = await Promise.all([table.open(CALL), table.open(CALL)]);
    const running = table.run(opened[0]!.sessionId, runRequest("sleep"), CALL);
    await table[Symbol.asyncDispose]();
    expect(source.vms.map((vm) => vm.isDisposed)).toEqual([true, true]);
    expect(source.isDisposed).toBe(true);
    expect((await rejection(running)).message).toContain("the server shut down");
    expect(await rejection(table.open(CALL))).toMatchObject({ code: "shutting_down" });
  });

  test.each(["open", "reset"])(
    "waits for the machine of an %s under way and disposes of it",
    async (kind) => {
      const { table, source } = openTable();
      const { sessionId } = await table.open(CALL);
      const gate = Promise.withResolvers<void>();
      source.gate = gate.promise;
      const claiming: Promise<unknown> = kind === "open" ? table.open(CALL) : table.reset(sessionId, CALL);
      const refused = rejection<SessionError>(claiming);
      const shutdown = table[Symbol.asyncDispose]();
      await Bun.sleep(1);
      gate.resolve();
      await shutdown;
      expect(source.vms.map((vm) => vm.isDisposed)).toEqual([true, true]);
      expect((await refused).code).toBe(kind === "open" ? "shutting_down" : "dead_session");
    },
  );

  test("waits for a machine that takes its time to end", async () => {
    const { table, source } = openTable();
    await table.open(CALL);
    const gate = Promise.withResolvers<void>();
    source.lastVm.beforeDisposed = gate.promise;
    let isOver = false;
    const shutdown = table[Symbol.asyncDispose]().then(() => {
      isOver = true;
    });
    await Bun.sleep(2);
    expect(isOver).toBe(false);
    gate.resolve();
    await shutdown;
  });

  test("of a table nobody used touches no machine", async () => {
    const { table, source } = openTable();
    await table[Symbol.asyncDispose]();
    expect(source.claims).toBe(0);
  });

  test("survives a machine that cannot be ended", async () => {
    const { table, source } = openTable();
    await Promise.all([table.open(CALL), table.open(CALL)]);
    source.vms[0]!.beforeDisposed = Promise.reject(new Error("it holds on"));
    await table[Symbol.asyncDispose]();
    expect(source.vms[1]!.isDisposed).toBe(true);
  });
});
