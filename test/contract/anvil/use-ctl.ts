import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { runCommand } from "../../../src/cli/run-command.ts";
import { CapturedOutput } from "../../unit/cli/captured-output.ts";
import { FakeDaemon } from "./fake-daemon.ts";

const VARIABLES = ["EPHEMERA_CTL_URL", "EPHEMERA_CTL_TOKEN", "EPHEMERA_API_TOKEN"];

interface Ctl {
  /** Another one for each test, which EPHEMERA_CTL_URL names */
  daemon: FakeDaemon;
  ctl(...args: string[]): Promise<{ code: number; out: string; err: string }>;
}

/** Gives each test of a file a fake daemon, and `ignition-mcp ctl` in this process. */
export function useCtl(): Ctl {
  const before = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  const fixture = { ctl } as Ctl;
  beforeAll(clearVariables);
  beforeEach(() => {
    fixture.daemon = new FakeDaemon();
    process.env["EPHEMERA_CTL_URL"] = fixture.daemon.url;
  });
  afterEach(async () => {
    clearVariables();
    await fixture.daemon[Symbol.asyncDispose]();
  });
  afterAll(() => {
    // An undefined one would be set to the text "undefined", for every file after this one
    for (const [name, value] of Object.entries(before)) if (value !== undefined) process.env[name] = value;
  });
  return fixture;
}

function clearVariables(): void {
  for (const name of VARIABLES) delete process.env[name];
}

async function ctl(...args: string[]) {
  const output = new CapturedOutput();
  return { code: await runCommand(["ctl", ...args], output), out: output.stdoutText, err: output.stderrText };
}
