import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { describeWithVms } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const MIB = 1_048_576;
/** What is shown of each stream when it is cut */
const SHOWN_BYTES = 32_768;

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function numberedLines(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index}\n`).join("");
}

describeWithVms("what goes into a run and comes out", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("long output keeps both ends, counts every byte, and is whole in a file", async () => {
    const whole = numberedLines(200_000);
    const result = await session.run("seq 0 199999");
    expect(result).toMatchObject({ exit_code: 0, stdout_bytes: whole.length, stdout_truncated: true });
    const [head, tail] = result.stdout.split(/\n\[\.\.\. .* \.\.\.\]\n/) as [string, string];
    expect(whole.startsWith(head)).toBe(true);
    expect(whole.endsWith(tail)).toBe(true);
    expect(head.length + tail.length).toBe(SHOWN_BYTES);
    const [, omitted] = /\[\.\.\. (\d+) bytes omitted; all of it is in (\S+) \.\.\.\]/.exec(result.stdout)!;
    expect(Number(omitted)).toBe(whole.length - SHOWN_BYTES);
    expect(await session.sha256Of(result.stdout_path!)).toBe(sha256(whole));
  });

  test("output up to the limit is shown whole, and one byte more is not", async () => {
    const exact = await session.run(`head -c ${SHOWN_BYTES} /dev/zero | tr '\\0' x`);
    expect(exact.stdout).toBe("x".repeat(SHOWN_BYTES));
    expect(exact).toMatchObject({ stdout_bytes: SHOWN_BYTES, stdout_truncated: false });
    expect(exact.stdout_path).toBeUndefined();
    const more = await session.run(`head -c ${SHOWN_BYTES + 1} /dev/zero | tr '\\0' x >&2`);
    expect(more).toMatchObject({ stderr_bytes: SHOWN_BYTES + 1, stderr_truncated: true });
    expect(await session.sha256Of(more.stderr_path!)).toBe(sha256("x".repeat(SHOWN_BYTES + 1)));
  });

  test("output beyond what the guest can keep is counted, and its file is said to be only the start", async () => {
    const result = await session.run("yes | head -c 100000000", { timeout_s: 60 });
    expect(result).toMatchObject({ exit_code: 0, stdout_bytes: 100_000_000, stdout_truncated: true });
    expect(result.stdout).toContain(`its start is in ${result.stdout_path}`);
    expect(result.stdout).not.toContain("all of it");
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("long output on both streams at once loses nothing", async () => {
    const result = await session.run("seq 0 99999 & seq 0 99999 >&2; wait");
    const expected = sha256(numberedLines(100_000));
    expect(await session.sha256Of(result.stdout_path!)).toBe(expected);
    expect(await session.sha256Of(result.stderr_path!)).toBe(expected);
  });

  test("output of a run that times out is whole in its file too", async () => {
    const result = await session.run("seq 0 99999; sleep 600", { timeout_s: 5 });
    expect(result).toMatchObject({ timed_out: true, exit_code: 124, stdout_truncated: true });
    expect(await session.sha256Of(result.stdout_path!)).toBe(sha256(numberedLines(100_000)));
  });

  test("bytes that are no UTF-8 are replaced and counted", async () => {
    const result = await session.run("printf 'a\\377b\\303'");
    expect(result).toMatchObject({ stdout: "a\ufffdb\ufffd", stdout_bytes: 4 });
  });

  test("characters of any size come through unharmed", async () => {
    const text = "zażółć 日本語 🚀\u0000\t";
    expect(await session.output("cat", { stdin: text })).toBe(text);
  });

  test("a cut never splits a character", async () => {
    const result = await session.run("python3 -c \"print('日本語🚀' * 20000)\"");
    expect(result.stdout_truncated).toBe(true);
    expect(result.stdout).not.toContain("\ufffd");
  });

  test("a command of 1 MiB runs, and one byte more is refused with the limit", async () => {
    const command = (size: number) => `printf %s '${"c".repeat(size - "printf %s ''|wc -c".length)}'|wc -c`;
    expect(command(MIB)).toHaveLength(MIB);
    expect(await session.output(command(MIB))).toBe(`${MIB - "printf %s ''|wc -c".length}\n`);
    expect(await session.refusal("run", { command: command(MIB + 1) })).toContain(String(MIB));
  });

  test("stdin of 5 MiB arrives whole", async () => {
    const stdin = "0123456789abcdef".repeat(5 * 65_536);
    expect(await session.output("sha256sum", { stdin })).toBe(`${sha256(stdin)}  -\n`);
  });

  test("stdin nobody reads does not hold up the run", async () => {
    expect(await session.output("echo done", { stdin: "x".repeat(5 * MIB) })).toBe("done\n");
  });
});
