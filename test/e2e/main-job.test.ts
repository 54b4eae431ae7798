import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { describeWithVms } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

describeWithVms("a session is a computer of its own", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start();
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("the server offers the five tools", async () => {
    const { tools } = await server.client.client.listTools();
    expect(tools.map((tool) => tool.name).sort()).toEqual([
      "close",
      "open_session",
      "reset",
      "run",
      "write_file",
    ]);
  });

  test("it has Linux, Python, git and a C compiler that work", async () => {
    expect(await session.output("uname -s")).toBe("Linux\n");
    expect(await session.output("python3 -c 'print(6 * 7)'")).toBe("42\n");
    expect(await session.output("git init -q repo && git -C repo rev-parse --git-dir")).toBe(".git\n");
    await session.writeFile(
      "answer.c",
      '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n',
    );
    expect(await session.output("gcc -o answer answer.c && ./answer")).toBe("compiled\n");
  });

  test("files stay from one run to the next, shell state does not", async () => {
    await session.run("echo kept > kept.txt; export COLOUR=blue; cd /usr; alias greet=true");
    expect(await session.output("cat kept.txt")).toBe("kept\n");
    expect(await session.output('echo "[$COLOUR]"; pwd')).toBe("[]\n/root\n");
    expect((await session.run("greet")).exit_code).toBe(127);
  });

  test("a run starts in cwd, absolute or below /root", async () => {
    expect(await session.output("pwd", { cwd: "/usr/share" })).toBe("/usr/share\n");
    await session.run("mkdir -p below");
    expect(await session.output("pwd", { cwd: "below" })).toBe("/root/below\n");
  });

  test("stdin is what was given and then its end, or nothing at all", async () => {
    expect(await session.output("cat", { stdin: "one\ntwo\n" })).toBe("one\ntwo\n");
    expect(await session.output("wc -c", { stdin: "" })).toBe("0\n");
    expect(await session.output("cat; readlink /proc/self/fd/0")).toBe("/dev/null\n");
  });

  test("stdout and stderr are told apart", async () => {
    const result = await session.run("echo out; echo err >&2");
    expect(result).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      exit_code: 0,
      timed_out: false,
      duration_ms: expect.any(Number),
      stdout_bytes: 4,
      stderr_bytes: 4,
      stdout_truncated: false,
      stderr_truncated: false,
    });
  });

  test("a timeout keeps what was printed and leaves the session usable", async () => {
    const result = await session.run("echo before; sleep 600; echo after", { timeout_s: 1 });
    expect(result).toMatchObject({ stdout: "before\n", timed_out: true, exit_code: 124 });
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("a command that fails is a successful call", async () => {
    const answer = await session.call("run", { command: "echo why >&2; exit 3" });
    expect(answer.isError).toBe(false);
    expect(answer.fields).toMatchObject({ exit_code: 3, stderr: "why\n", timed_out: false });
  });

  test("a command ended by a signal says which", async () => {
    expect(await session.run("kill -9 $$")).toMatchObject({ exit_code: -9, signal: "SIGKILL" });
    expect(await session.run("kill -TERM $$")).toMatchObject({ exit_code: -15, signal: "SIGTERM" });
  });

  test("a written file has every byte", async () => {
    const everyByte = Uint8Array.from({ length: 256 }, (_, value) => value);
    await session.writeFile("/root/every-byte.bin", everyByte);
    const expected = createHash("sha256").update(everyByte).digest("hex");
    expect(await session.sha256Of("/root/every-byte.bin")).toBe(expected);
  });

  test("text and structure of an answer say the same", async () => {
    const answer = await session.call("run", { command: "echo same; false" });
    expect(JSON.parse(answer.text)).toEqual(answer.fields);
  });
});

describeWithVms("sessions begin and end", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("two sessions do not see each other's files", async () => {
    const [first, second] = [await server.open(), await server.open()];
    expect(first.id).not.toBe(second.id);
    await first.writeFile("mine.txt", "first");
    await second.writeFile("mine.txt", "second");
    await first.run("touch /tmp/only-first /only-first");
    expect(await first.output("cat mine.txt")).toBe("first");
    expect(await second.output("cat mine.txt; ls /tmp/only-first /only-first 2>/dev/null || echo none")).toBe(
      "secondnone\n",
    );
    await Promise.all([first.close(), second.close()]);
  });

  test("reset keeps the id and loses files and processes", async () => {
    const session = await server.open();
    await session.run("echo old > old.txt; sleep 31415 >/dev/null 2>&1 &");
    expect(await session.countProcesses("sleep 31415")).toBe(1);
    await session.reset();
    expect(await session.output("ls")).not.toContain("old.txt");
    expect(await session.countProcesses("sleep 31415")).toBe(0);
    await session.close();
  });

  test("a closed id is an error that names it and says that it was closed", async () => {
    const session = await server.open();
    await session.close();
    for (const [tool, args] of [
      ["run", { command: "true" }],
      ["write_file", { path: "x", content_base64: "" }],
      ["reset", {}],
      ["close", {}],
    ] as const) {
      const message = await session.refusal(tool, args);
      expect(message).toContain(session.id);
      expect(message).toContain("closed");
      expect(message).toContain("open_session");
    }
  });

  test("an unknown id is an error that names it", async () => {
    const answer = await server.client.call("run", { session_id: "ses_never_given", command: "true" });
    expect(answer.isError).toBe(true);
    expect(answer.fields).toMatchObject({ error: { code: "unknown_session" } });
    expect(answer.text).toContain("ses_never_given");
  });
});
