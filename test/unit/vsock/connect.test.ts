import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { FakePeer } from "./fake-peer.ts";

const REPOSITORY = join(import.meta.dir, "../../..");
const directory = mkdtempSync(join(tmpdir(), "vsock-connect-"));
const sourcePath = join(REPOSITORY, `build/carrier-probe-${process.pid}/probe.ts`);
const programPath = join(directory, "probe");

/** Says which carrier it uses, connects to its argument, closes, and ends because nothing keeps it alive. */
const PROBE = `
import { carrierInUse, connectFrames } from "../../src/vsock/connect.ts";
const ends: unknown[] = [];
const connection = await connectFrames({
  path: process.argv[2]!, port: 7000, deadlineMs: 60_000,
  handler: { onFrames() {}, onClose: (error) => ends.push(error) },
});
connection.close();
process.on("exit", () => console.log(carrierInUse(), ends.length, ends[0] === null));
`;

async function run(command: string[], env: Record<string, string> = {}): Promise<string> {
  using fake = new FakePeer();
  const child = Bun.spawn([...command, fake.path], {
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return stdout.trim() || stderr;
}

beforeAll(async () => {
  await Bun.write(sourcePath, PROBE);
  const compile = ["build", "--compile", "--format=esm", "--bytecode", sourcePath, "--outfile", programPath];
  const build = Bun.spawn([process.execPath, ...compile], {
    cwd: REPOSITORY,
    stdout: "ignore",
    stderr: "pipe",
  });
  if ((await build.exited) !== 0) throw new Error(await build.stderr.text());
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
  rmSync(dirname(sourcePath), { recursive: true, force: true });
});

describe("the carrier", () => {
  test("is the addon when run from source, and lets the process end", async () => {
    expect(await run([process.execPath, sourcePath])).toBe("native-memfd 1 true");
  });

  test("is the twin when that is asked for, and lets the process end", async () => {
    expect(await run([process.execPath, sourcePath], { IGN_MCP_CARRIER: "twin" })).toBe("twin 1 true");
  });

  test("is the embedded addon in a compiled program, whatever the temporary directory", async () => {
    expect(await run([programPath])).toBe("native-memfd 1 true");
    const readOnly = "/proc";
    expect(await run([programPath], { TMPDIR: readOnly, BUN_TMPDIR: readOnly })).toBe("native-memfd 1 true");
  });

  test("is the addon from its file where memory cannot be executed from, and the twin where neither works", async () => {
    // A program without memfd: its first attempt fails, as it does where the kernel forbids it.
    const copy = join(directory, "copy");
    mkdirSync(join(copy, "src"), { recursive: true });
    cpSync(join(REPOSITORY, "src/vsock"), join(copy, "src/vsock"), { recursive: true });
    cpSync(join(REPOSITORY, "src/base"), join(copy, "src/base"), { recursive: true });
    const loader = join(copy, "src/vsock/load-native.ts");
    await Bun.write(loader, (await Bun.file(loader).text()).replace('"libc.so.6"', '"no-such-libc.so"'));
    await Bun.write(join(copy, "build/probe/probe.ts"), PROBE);
    const probe = [process.execPath, join(copy, "build/probe/probe.ts")];
    expect(await run(probe)).toBe("twin 1 true");
    expect(await run(probe, { IGN_MCP_CARRIER: "native" })).toContain("run scripts/build-native");
    cpSync(join(REPOSITORY, "build/native/Release"), join(copy, "build/native/Release"), { recursive: true });
    expect(await run(probe)).toBe("native-file 1 true");
  });
});
