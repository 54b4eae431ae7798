import { describe, expect, test } from "bun:test";
import { DeadlineError } from "../../../src/base/wait.ts";
import { loadState, saveState } from "../../../src/vm/qemu/migration.ts";
import { rejection } from "../../support/rejection.ts";
import { ScriptedQemu } from "./scripted-qemu.ts";

/** Answers every command, and tells the given states after the one that starts the migration. */
function migrating(...statuses: string[]): ScriptedQemu {
  return new ScriptedQemu((command, qemu) => {
    qemu.answer(command);
    if (command.execute.startsWith("migrate") && command.execute !== "migrate-set-capabilities")
      for (const status of statuses) qemu.event("MIGRATION", { status });
  });
}

describe.each([
  ["saving", saveState, "migrate"],
  ["loading", loadState, "migrate-incoming"],
] as const)("%s state", (_, transfer, command) => {
  test("leaves memory out, and is over when QEMU says completed", async () => {
    const qemu = migrating("setup", "active", "completed");
    await transfer(qemu.qmp, "/store/state.bin", 1000);
    expect(qemu.commands.map(({ execute }) => execute)).toEqual(["migrate-set-capabilities", command]);
    expect(qemu.commands[0]!.arguments).toEqual({
      capabilities: [
        { capability: "x-ignore-shared", state: true },
        { capability: "events", state: true },
      ],
    });
    expect(qemu.commands[1]!.arguments).toEqual({ uri: "file:/store/state.bin" });
  });

  test("rejects when QEMU says failed", async () => {
    const error = await rejection(transfer(migrating("active", "failed").qmp, "/s", 1000));
    expect(error.message).toBe(`QEMU could not ${command} /s`);
  });

  test("rejects as soon as QEMU ends", async () => {
    const qemu = migrating("active");
    const transferring = rejection(transfer(qemu.qmp, "/s", 100_000));
    await Bun.sleep(1);
    qemu.qmp.end("ended");
    expect((await transferring).message).toBe("QEMU ended");
  });

  test("has a deadline, and ends when the caller gives up", async () => {
    expect(await rejection(transfer(migrating("active").qmp, "/s", 5))).toBeInstanceOf(DeadlineError);
    const reason = new Error("enough");
    expect(await rejection(transfer(migrating().qmp, "/s", 1000, AbortSignal.abort(reason)))).toBe(reason);
  });
});
