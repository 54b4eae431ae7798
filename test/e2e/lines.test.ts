import { expect, test } from "bun:test";
import { RawClient } from "../support/raw-client.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";

const LINE_LIMIT_BYTES = 64 * 1_048_576;

describeWithVms("lines on stdin", () => {
  test("that are too long, no JSON or no message are answered, and the server goes on", async () => {
    using home = new TestHome();
    await using client = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await client.initialize();
    const tooLong = client.request("tools/call", {
      name: "run",
      arguments: { session_id: "s", command: "x".repeat(LINE_LIMIT_BYTES) },
    });
    const { code, message } = (await tooLong)["error"] as { code: number; message: string };
    expect(code).toBe(-32600);
    expect(message).toContain(String(LINE_LIMIT_BYTES));
    client.sendLine("this is no JSON");
    client.sendLine('{"jsonrpc":"2.0"}');
    client.sendLine("");
    const tools = (await client.request("tools/list"))["result"] as { tools: unknown[] };
    expect(tools.tools).toHaveLength(5);
    const errors = (await client.take(2)).map((answer) => (answer["error"] as { code: number }).code);
    expect(errors).toEqual([-32700, -32600]);
    expect(client.strayLines).toEqual([]);
    client.endInput();
    expect(await client.exited()).toBe(0);
  });

  test("with a number that is beyond JSON's are refused with the argument's limits", async () => {
    using home = new TestHome();
    await using client = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await client.initialize();
    client.sendLine(
      '{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{"name":"run","arguments":{"session_id":"s","command":"true","timeout_s":1e999}}}',
    );
    const answer = await client.next();
    expect(answer["id"]).toBe("huge");
    expect(JSON.stringify(answer)).toContain("from 0.001 to 3600");
  });
});
