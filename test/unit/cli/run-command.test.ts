import { afterEach, expect, test } from "bun:test";
import packageJson from "../../../package.json" with { type: "json" };
import { Fault } from "../../../src/base/fault.ts";
import type { BaseActions } from "../../../src/cli/base-commands.ts";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { runCommand } from "../../../src/cli/run-command.ts";
import { CapturedOutput } from "./captured-output.ts";

afterEach(() => {
  delete process.env["IGN_MCP_MEM"];
});

async function invoke(...args: string[]) {
  const output = new CapturedOutput();
  return { code: await runCommand(args, output), out: output.stdoutText, err: output.stderrText };
}

test("--version prints the version alone", async () => {
  expect(await invoke("--version")).toEqual({ code: EXIT.ok, out: `${packageJson.version}\n`, err: "" });
});

test("--help names every command and variable on stdout", async () => {
  const { code, out, err } = await invoke("--help");
  expect({ code, err }).toEqual({ code: EXIT.ok, err: "" });
  for (const word of ["serve", "base", "IGN_MCP_STORE", "IGN_MCP_LOG", "(tools-base)"])
    expect(out).toContain(word);
});

test.each([
  [["bsae"], "Did you mean base?"],
  [["--bogus"], "unknown option '--bogus'"],
  [["serve", "extra"], "too many arguments"],
  [["base", "rm"], "missing required argument 'name'"],
  [["base", "rm", "../up"], "A base name must be 1 to 64 of"],
  [["base", "build", "UP"], "A base name must be 1 to 64 of"],
  [["base", "ls", "--jsn"], "Did you mean --json?"],
])("%p makes no sense and ends with 2", async (args, message) => {
  const { code, out, err } = await invoke(...args);
  expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
  expect(err).toContain(message);
});

test.each([[[]], [["serve"]], [["base", "ls"]]])("%p with a wrong variable ends with 78", async (args) => {
  process.env["IGN_MCP_MEM"] = "lots";
  const { code, out, err } = await invoke(...args);
  expect({ code, out }).toEqual({ code: EXIT.badConfig, out: "" });
  expect(err).toBe('ignition-mcp: IGN_MCP_MEM is "lots"; it must be a whole number from 128 to 65536.\n');
});

class StoreFault extends Fault<"no_base"> {}

async function invokeWith(actions: Partial<BaseActions>, ...args: string[]) {
  const output = new CapturedOutput();
  const code = await runCommand(args, output, async () => actions as BaseActions);
  return { code, out: output.stdoutText, err: output.stderrText };
}

test("commands act on the base they name, else on the configured one", async () => {
  const named: string[] = [];
  const buildBase: BaseActions["buildBase"] = async (_config, { name, force }) =>
    void named.push(`${name} ${force}`);
  expect((await invokeWith({ buildBase }, "base", "build")).code).toBe(EXIT.ok);
  expect((await invokeWith({ buildBase }, "base", "build", "other", "--force")).code).toBe(EXIT.ok);
  expect(named).toEqual(["tools-base false", "other true"]);
});

test("what a command ends with is the exit code", async () => {
  const verifyBase = async () => ["memory.bin has another hash"];
  expect((await invokeWith({ verifyBase }, "base", "verify")).code).toBe(EXIT.failed);
});

test("a fault is told in its own sentence and ends with 1", async () => {
  const removeBase = () => Promise.reject(new StoreFault("no_base", "There is no base old."));
  const { code, err } = await invokeWith({ removeBase }, "base", "rm", "old");
  expect({ code, err }).toEqual({ code: EXIT.failed, err: "ignition-mcp: There is no base old.\n" });
});

test("a bug is told as one and ends with 70", async () => {
  const listBases = () => Promise.reject(new TypeError("boom"));
  const { code, err } = await invokeWith({ listBases }, "base", "ls");
  expect(code).toBe(EXIT.bug);
  expect(err).toContain("a bug: TypeError: boom");
});

test("a bug without a stack, as some of the runtime's errors are, is told by its message", async () => {
  const bare = new Error("boom");
  delete bare.stack;
  const { err } = await invokeWith({ listBases: () => Promise.reject(bare) }, "base", "ls");
  expect(err).toBe("ignition-mcp: a bug: Error: boom\n");
});

test("Ctrl-C during a build aborts it and ends with 130", async () => {
  const buildBase: BaseActions["buildBase"] = (_config, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new StoreFault("no_base", "aborted")));
      process.emit("SIGINT");
    });
  expect((await invokeWith({ buildBase }, "base", "build")).code).toBe(EXIT.interrupted);
});

test("no listener for Ctrl-C is left behind", async () => {
  const before = process.listenerCount("SIGINT");
  await invoke("--version");
  expect(process.listenerCount("SIGINT")).toBe(before);
});
