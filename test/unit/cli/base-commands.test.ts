import { expect, test } from "bun:test";
import { Fault } from "../../../src/base/fault.ts";
import { type BaseActions, BaseCommands, type BaseSummary } from "../../../src/cli/base-commands.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { CapturedOutput } from "./captured-output.ts";

class StoreFault extends Fault<"no_base"> {}

const CONFIG = loadConfig({ HOME: "/nowhere" });
const SOUND: BaseSummary = {
  name: "tools-base",
  kind: "base",
  createdAt: "2026-11-30T10:00:00Z",
  sizeBytes: 314_572_800,
  accel: "tcg",
  unusable: null,
};
const STALE: BaseSummary = { ...SOUND, name: "old", unusable: "made by another QEMU" };

function start(actions: Partial<BaseActions>, isTTY = false) {
  const refuse = () => Promise.reject(new Error("not expected to be called"));
  const all = { buildBase: refuse, listBases: refuse, removeBase: refuse, verifyBase: refuse, ...actions };
  const output = new CapturedOutput(isTTY);
  return { output, commands: new BaseCommands(CONFIG, all, output) };
}

test("build tells each state once on stderr and nothing on stdout", async () => {
  let asked: unknown;
  const { commands, output } = start({
    buildBase: async (_config, { progress, signal, ...options }) => {
      asked = options;
      for (const state of ["booting", "booting", "snapshotting"]) progress(state);
    },
  });
  expect(await commands.build("my-base", true, new AbortController().signal)).toBe(0);
  expect(asked).toEqual({ name: "my-base", force: true });
  expect(output.stdoutText).toBe("");
  expect(output.stderrText).toMatch(/^booting\nsnapshotting\nBase my-base built in \d+\.\d s\.\n$/);
});

test("on a terminal the states share one line that is gone at the end", async () => {
  const { commands, output } = start(
    { buildBase: async (_config, { progress }) => progress("booting") },
    true,
  );
  await commands.build("b", false, new AbortController().signal);
  expect(output.stderrText).toStartWith("\r\u001b[2Kbooting\r\u001b[2KBase b built");
});

test("a failed build leaves its error to the caller and a clean line", async () => {
  const { commands, output } = start(
    {
      buildBase: async (_config, { progress }) => {
        progress("booting");
        throw new StoreFault("no_base", "It did not boot.");
      },
    },
    true,
  );
  await expect(commands.build("b", false, new AbortController().signal)).rejects.toThrow("It did not boot.");
  expect(output.stderrText).toEndWith("\r\u001b[2K");
});

test("ls prints a table for people", async () => {
  const { commands, output } = start({ listBases: async () => [SOUND, STALE] });
  expect(await commands.list(false)).toBe(0);
  expect(output.stdoutText).toBe(
    [
      "NAME        KIND  CREATED               SIZE     ACCEL  STATE",
      "tools-base  base  2026-11-30T10:00:00Z  300 MiB  tcg    usable",
      "old         base  2026-11-30T10:00:00Z  300 MiB  tcg    made by another QEMU",
      "",
    ].join("\n"),
  );
});

test("ls --json prints stable keys, and an empty store is an empty list", async () => {
  const { commands, output } = start({ listBases: async () => [STALE] });
  await commands.list(true);
  expect(JSON.parse(output.stdoutText)).toEqual([
    {
      name: "old",
      kind: "base",
      created_at: "2026-11-30T10:00:00Z",
      size_bytes: 314_572_800,
      accel: "tcg",
      usable: false,
      reason: "made by another QEMU",
    },
  ]);
  const empty = start({ listBases: async () => [] });
  await empty.commands.list(true);
  expect(empty.output.stdoutText).toBe("[]\n");
});

test("ls of an empty store says how to build one, on stderr", async () => {
  const { commands, output } = start({ listBases: async () => [] });
  expect(await commands.list(false)).toBe(0);
  expect(output.stdoutText).toBe("");
  expect(output.stderrText).toContain("ignition-mcp base build");
});

test("rm removes the base that is named", async () => {
  const removed: string[] = [];
  const { commands, output } = start({ removeBase: async (_config, name) => void removed.push(name) });
  expect(await commands.remove("old")).toBe(0);
  expect(removed).toEqual(["old"]);
  expect(output.stderrText).toBe("Base old removed.\n");
});

test("verify prints the problems as data and fails when there are any", async () => {
  const bad = start({ verifyBase: async () => ["memory.bin has another hash"] });
  expect(await bad.commands.verify("old")).toBe(1);
  expect(bad.output.stdoutText).toBe("memory.bin has another hash\n");
  expect(bad.output.stderrText).toContain("ignition-mcp base build old --force");
  const good = start({ verifyBase: async () => [] });
  expect(await good.commands.verify("old")).toBe(0);
  expect(good.output.stdoutText).toBe("");
});
