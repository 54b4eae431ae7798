import { afterEach, expect, test } from "bun:test";
import packageJson from "../../../package.json" with { type: "json" };
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

test("no listener for Ctrl-C is left behind", async () => {
  const before = process.listenerCount("SIGINT");
  await invoke("--version");
  expect(process.listenerCount("SIGINT")).toBe(before);
});
