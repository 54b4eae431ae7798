import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { describeWithVms } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const MIB = 1_048_576;
const EMPTY_SHA256 = createHash("sha256").digest("hex");

describeWithVms("inputs", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    session = await server.open();
    await session.run("echo witness > witness");
  });
  afterAll(async () => {
    // Whatever was refused above, it was refused by the same session.
    expect(await session.output("cat witness")).toBe("witness\n");
    await server[Symbol.asyncDispose]();
  });

  describe("of write_file", () => {
    const refusal = (args: Record<string, unknown>) =>
      session.refusal("write_file", { path: "x", content_base64: "", ...args });

    test.each([
      ["a character outside the alphabet", "ab*d", '"*"'],
      ["the URL alphabet", "ab-_", "URL alphabet"],
      ["missing padding", "abc", "padding"],
    ])("content with %s is refused", async (_, content_base64, reason) => {
      const message = await refusal({ content_base64 });
      expect(message).toContain("content_base64");
      expect(message).toContain(reason);
    });

    test("a path with a NUL is refused", async () => {
      const message = await refusal({ path: "a\0b" });
      expect(message).toContain("path");
      expect(message).toContain("NUL");
    });

    test("an empty, missing or endless path is refused", async () => {
      expect(await refusal({ path: "" })).toContain("path is empty");
      expect(await refusal({ path: null })).toContain("path is missing");
      expect(await refusal({ path: "p".repeat(5000) })).toContain("the limit is 4095");
    });

    test("a directory, or a path below a file, is refused with its name", async () => {
      const directory = await refusal({ path: "/usr" });
      expect(directory).toContain("/usr");
      expect(directory).toContain("is a directory");
      expect(await refusal({ path: "/etc/passwd/below" })).toContain("/etc/passwd/below");
      expect(await refusal({ path: `/root/${"n".repeat(300)}` })).toContain("too long");
    });

    test("missing directories are created, and a relative path is below /root", async () => {
      await session.writeFile("new/deep/file.txt", "there");
      expect(await session.output("cat /root/new/deep/file.txt")).toBe("there");
    });

    test("empty content makes an empty file, also in place of a full one", async () => {
      await session.writeFile("empty.bin", "");
      expect(await session.sha256Of("empty.bin")).toBe(EMPTY_SHA256);
      await session.writeFile("full.bin", "content");
      await session.writeFile("full.bin", "");
      expect(await session.output("wc -c < full.bin")).toBe("0\n");
    });

    test("32 MiB are written whole, and one byte more is refused with the limit", async () => {
      const content = Buffer.alloc(32 * MIB + 1);
      for (let at = 0; at < content.length; at += 4)
        content.writeUInt32LE(at, Math.min(at, content.length - 4));
      const most = content.subarray(0, 32 * MIB);
      await session.writeFile("/root/most.bin", most);
      expect(await session.sha256Of("/root/most.bin")).toBe(createHash("sha256").update(most).digest("hex"));
      const message = await refusal({ path: "/root/most.bin", content_base64: content.toString("base64") });
      expect(message).toContain(`the limit is ${32 * MIB}`);
      expect(await session.output("wc -c < /root/most.bin; rm /root/most.bin")).toBe(`${32 * MIB}\n`);
    });

    test("a file that does not fit is refused, and what was there stays", async () => {
      await session.writeFile("kept.txt", "kept");
      await session.run("head -c 1G /dev/zero > filler 2>/dev/null");
      const content_base64 = Buffer.alloc(4 * MIB).toString("base64");
      const message = await session.refusal("write_file", { path: "kept.txt", content_base64 });
      await session.run("rm filler");
      expect(message).toContain("no space left");
      expect(await session.output("cat kept.txt; ls -A | grep -c kept")).toBe("kept1\n");
    });
  });

  describe("of run", () => {
    const refusal = (args: Record<string, unknown>) => session.refusal("run", { command: "true", ...args });

    test.each([
      [0, "timeout_s is 0"],
      [-1, "timeout_s is -1"],
      [0.0001, "timeout_s is 0.0001"],
      [3601, "timeout_s is 3601"],
      [1e300, "timeout_s is 1e+300"],
      ["5", "timeout_s must be a number of seconds, not text"],
      ["NaN", "timeout_s must be a number of seconds, not text"],
      [[5], "timeout_s must be a number of seconds, not an array"],
      [true, "timeout_s must be a number of seconds, not a boolean"],
    ])("timeout_s %p is refused with the limits", async (timeout_s, reason) => {
      const message = await refusal({ timeout_s });
      expect(message).toContain(reason);
      expect(message).toContain("from 0.001 to 3600");
    });

    test("a fractional timeout works, and null means the default", async () => {
      expect(await session.run("sleep 600", { timeout_s: 0.5 })).toMatchObject({ timed_out: true });
      const answer = await session.call("run", { command: "true", timeout_s: null, cwd: null, stdin: null });
      expect(answer.fields).toMatchObject({ exit_code: 0 });
    });

    test("an empty, missing or NUL-ridden command is refused", async () => {
      expect(await refusal({ command: "" })).toContain("command is empty");
      expect(await refusal({ command: null })).toContain("command is missing");
      expect(await refusal({ command: 7 })).toContain("command must be text, not a number");
      expect(await refusal({ command: "a\0b" })).toContain("NUL");
    });

    test("an unknown argument is refused with the one that was meant", async () => {
      const message = await refusal({ timeout: 5 });
      expect(message).toContain('"timeout"');
      expect(message).toContain("timeout_s");
    });
  });

  test.each([
    [5, "not a number"],
    [{}, "not an object"],
    [["x"], "not an array"],
    [true, "not a boolean"],
    [null, "missing"],
    ["", "empty"],
    ["s".repeat(200), "200 characters"],
  ])("session_id %p is refused with the reason", async (session_id, reason) => {
    const answer = await server.client.call("run", { session_id, command: "true" });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain("session_id");
    expect(answer.text).toContain(reason);
  });
});
