import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithVms } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const MIB = 1_048_576;

describeWithVms("read_file", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0", IGN_MCP_TOOLS: "all" });
    session = await server.open();
    await session.run(
      "seq 1 100000 > lines; printf 'ab\\nzażółć 🚀' > text; printf '\\377\\000\\001' > bytes",
    );
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function read(path: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const { isError, text, fields } = await session.call("read_file", { path, ...args });
    if (isError) throw new Error(text);
    return fields;
  }

  test("gives text from the start, says how large the file is and what is left", async () => {
    const { content, ...rest } = await read("lines");
    expect(content).toStartWith("1\n2\n3\n");
    expect(rest).toEqual({ offset: 0, bytes: 32_768, file_bytes: 588_895, left_bytes: 588_895 - 32_768 });
    expect(await read("text")).toMatchObject({ content: "ab\nzażółć 🚀", left_bytes: 0 });
  });

  test("gives any bytes in base64, and marks text that is none", async () => {
    expect(await read("bytes", { encoding: "base64" })).toMatchObject({ content: "/wAB", bytes: 3 });
    expect(await read("/root/bytes")).toMatchObject({ content: "\ufffd\0\u0001", invalid_utf8: true });
  });

  test("gives ranges of bytes that join without splitting a character", async () => {
    let joined = "";
    for (let offset = 0; ; ) {
      const part = await read("text", { offset, max_bytes: 4 });
      joined += part["content"];
      offset += part["bytes"] as number;
      if (part["left_bytes"] === 0) break;
    }
    expect(joined).toBe("ab\nzażółć 🚀");
  });

  test("gives ranges of lines, also far into the file", async () => {
    expect(await read("lines", { start_line: 3, end_line: 5 })).toMatchObject({ content: "3\n4\n5\n" });
    expect((await read("lines", { end_line: 2 }))["content"]).toBe("1\n2\n");
    const last = await read("lines", { start_line: 99_999 });
    expect(last).toMatchObject({ content: "99999\n100000\n", left_bytes: 0 });
    const message = await session.refusal("read_file", { path: "lines", start_line: 100_001 });
    expect(message).toStartWith("bad_range: '");
    expect(message).toContain("has 100000 lines, and no line 100001");
  });

  test("gives at most 1 MiB at once", async () => {
    await session.run("head -c 3000000 /dev/zero | tr '\\0' y > big");
    const most = await read("big", { max_bytes: MIB });
    expect(most).toMatchObject({ bytes: MIB, left_bytes: 3_000_000 - MIB });
    const message = await session.refusal("read_file", { path: "big", max_bytes: MIB + 1 });
    expect(message).toContain("max_bytes is 1048577. Pass a whole number from 1 to 1048576");
  });

  test("reads what the kernel makes up, and says why it cannot read the rest", async () => {
    expect((await read("/proc/version"))["content"]).toStartWith("Linux version");
    expect(await session.refusal("read_file", { path: "nowhere" })).toStartWith("bad_path:");
    expect(await session.refusal("read_file", { path: "/etc" })).toStartWith("bad_path:");
    const beyond = await session.refusal("read_file", { path: "text", offset: 1000 });
    expect(beyond).toStartWith("bad_range:");
    const both = await session.refusal("read_file", { path: "text", offset: 1, start_line: 1 });
    expect(both).toStartWith("bad_argument: offset goes with bytes");
  });
});
