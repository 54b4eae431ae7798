import { afterAll, beforeAll, expect, test } from "bun:test";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

const CAP = 8;

describeWithVms("many sessions", () => {
  let server: TestServer;
  let sessions: TestSession[];

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    sessions = await Promise.all(Array.from({ length: CAP }, () => server.open()));
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("at once each answer for themselves", async () => {
    expect(new Set(sessions.map((session) => session.id)).size).toBe(CAP);
    await Promise.all(sessions.map((session, index) => session.writeFile("who", `session ${index}`)));
    const answers = await Promise.all(
      sessions.map((session, index) => session.output(`cat who; echo; echo $((${index} * 1000))`)),
    );
    expect(answers).toEqual(sessions.map((_, index) => `session ${index}\n${index * 1000}\n`));
  });

  test("beyond the cap are refused with its number and the way out", async () => {
    const answer = await server.client.call("open_session");
    expect(answer.isError).toBe(true);
    expect(answer.fields).toMatchObject({ error: { code: "session_cap", retryable: true } });
    for (const word of [String(CAP), "close", "IGN_MCP_MAX_SESSIONS"]) expect(answer.text).toContain(word);
    expect(server.vmms()).toHaveLength(CAP);
  });

  test("make room when one is closed", async () => {
    await sessions.shift()!.close();
    sessions.push(await server.open());
    expect((await server.client.call("open_session")).isError).toBe(true);
  });

  test("make room when the VMM of one is killed, and the others live on", async () => {
    process.kill(server.vmms()[0]!.pid, "SIGKILL");
    await eventually("the slot is free", 10_000, async () => {
      const answer = await server.client.call("open_session");
      return !answer.isError;
    });
    const answers = await Promise.all(sessions.map((session) => session.call("run", { command: "cat who" })));
    const dead = answers.filter((answer) => answer.isError);
    expect(dead).toHaveLength(1);
    expect(dead[0]!.text).toContain("its VMM was killed (SIGKILL)");
  });
});
