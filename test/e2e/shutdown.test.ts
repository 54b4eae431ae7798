import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { expectNoLeftovers, expectNoVms, vmsOf } from "../support/leftovers.ts";
import type { ProcessInfo } from "../support/processes.ts";
import { RawClient } from "../support/raw-client.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import { eventually } from "../support/test-server.ts";

const SESSIONS = 2;
const POOLED = 1;
const LIMIT_MS = 2000;

/** A server with two sessions, a run in flight in one of them, and a clone in its pool. */
async function busyServer(home: TestHome): Promise<{ client: RawClient; vms: ProcessInfo[] }> {
  const client = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
  try {
    await client.initialize();
    const ids = await Promise.all(Array.from({ length: SESSIONS }, () => open(client)));
    const args = { session_id: ids[0]!, command: "touch /root/started; sleep 600", timeout_s: 600 };
    // Its answer never comes when the server is killed: nobody waits for it.
    client.start("tools/call", { name: "run", arguments: args }, 600_000).reply.catch(() => undefined);
    await call(client, "run", {
      session_id: ids[0]!,
      command: "while [ ! -e /root/started ]; do sleep 0.05; done",
    });
    const count = () => vmsOf(client.pid).filter((info) => info.name.startsWith("qemu-system")).length;
    await eventually("the pool has its clone", 20_000, () => count() === SESSIONS + POOLED);
    return { client, vms: vmsOf(client.pid) };
  } catch (error) {
    await client[Symbol.asyncDispose]();
    throw error;
  }
}

async function call(client: RawClient, name: string, args: Record<string, unknown> = {}) {
  const reply = await client.request("tools/call", { name, arguments: args });
  const result = reply["result"] as { isError?: boolean; structuredContent: Record<string, unknown> };
  if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result)}`);
  return result.structuredContent;
}

async function open(client: RawClient): Promise<string> {
  return String((await call(client, "open_session"))["session_id"]);
}

describeWithVms("nothing outlives the server", () => {
  const ends: [string, (client: RawClient) => void][] = [
    ["the end of stdin", (client) => client.endInput()],
    ["SIGTERM", (client) => client.kill("SIGTERM")],
    ["SIGINT", (client) => client.kill("SIGINT")],
    ["SIGHUP", (client) => client.kill("SIGHUP")],
    [
      "a client that stops listening",
      (client) => {
        void client.closeOutput();
        client.notify("notifications/initialized");
        client.start("tools/list").reply.catch(() => undefined);
      },
    ],
  ];

  test.each(ends)("after %s", async (_, end) => {
    using home = new TestHome();
    const { client, vms } = await busyServer(home);
    await using _client = client;
    expect(vms.length).toBeGreaterThanOrEqual(SESSIONS + POOLED);
    end(client);
    expect(await client.exited()).toBe(0);
    await expectNoLeftovers(home, vms);
    expect(client.strayLines).toEqual([]);
  });

  test("and all is gone within two seconds", async () => {
    // Of three: a busy machine may be late, but not each time.
    let bestMs = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && bestMs > LIMIT_MS; tries++) {
      using home = new TestHome();
      const { client, vms } = await busyServer(home);
      await using _client = client;
      const startedAt = performance.now();
      client.endInput();
      await client.exited();
      await expectNoLeftovers(home, vms);
      bestMs = Math.min(bestMs, performance.now() - startedAt);
    }
    expect(bestMs).toBeLessThanOrEqual(LIMIT_MS);
  });

  test("after SIGKILL, and the next server sweeps what the dead one could not", async () => {
    using home = new TestHome();
    const { client, vms } = await busyServer(home);
    await using _client = client;
    const [deadName] = readdirSync(home.runtimePath);
    client.kill("SIGKILL");
    await client.exited();
    await expectNoVms(home, vms);
    expect(readdirSync(home.runtimePath)).toEqual([deadName!]);

    await using next = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await next.initialize();
    await open(next);
    const names = readdirSync(home.runtimePath);
    expect(names).toHaveLength(1);
    expect(names).not.toContain(deadName!);
    next.endInput();
    expect(await next.exited()).toBe(0);
    expect(existsSync(home.runtimePath)).toBe(false);
  });

  test("a server does not sweep what belongs to another that lives", async () => {
    using home = new TestHome();
    await using first = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await first.initialize();
    const id = await open(first);
    await using second = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await second.initialize();
    await open(second);
    expect(readdirSync(home.runtimePath)).toHaveLength(2);
    second.endInput();
    expect(await second.exited()).toBe(0);
    expect(await call(first, "run", { session_id: id, command: "echo on" })).toMatchObject({
      stdout: "on\n",
    });
    first.endInput();
    expect(await first.exited()).toBe(0);
    await expectNoLeftovers(home);
  });
});
