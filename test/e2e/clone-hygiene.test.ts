import { afterAll, beforeAll, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { sha256OfFile } from "../../src/base/file-hash.ts";
import { describeWithVms, STORE_PATH } from "../support/real-vm.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

const CLONES = 3;
const MAX_CLOCK_ERROR_S = 1;
const SESSIONS_OVER_THE_BASE = 50;

/** Seconds the guest's clock is outside the time during which it was read; 0 when it is inside. */
async function clockErrorS(session: TestSession): Promise<number> {
  const before = Date.now() / 1000;
  const guest = Number(await session.output("date +%s.%N"));
  const after = Date.now() / 1000;
  return Math.max(0, before - guest, guest - after);
}

describeWithVms("clones of one base", () => {
  let server: TestServer;
  let sessions: TestSession[];
  /** What each clone gave as its very first output */
  let random: string[];

  beforeAll(async () => {
    server = await TestServer.start();
    sessions = [];
    random = [];
    for (let count = 0; count < CLONES; count++) {
      const session = await server.open();
      sessions.push(session);
      random.push(await session.output("od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n'"));
    }
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const fromAll = (command: string) => Promise.all(sessions.map((session) => session.output(command)));

  test("have randomness of their own from the first byte", async () => {
    for (const bytes of random) expect(bytes).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(random).size).toBe(CLONES);
    const uuids = await fromAll("cat /proc/sys/kernel/random/uuid");
    expect(new Set(uuids).size).toBe(CLONES);
  });

  test("have names of their own", async () => {
    const hostnames = await fromAll("hostname");
    for (const hostname of hostnames) expect(hostname).toMatch(/^ignition-[0-9a-f]{8}\n$/);
    expect(new Set(hostnames).size).toBe(CLONES);
    const machineIds = await fromAll("cat /etc/machine-id");
    for (const machineId of machineIds) expect(machineId).toMatch(/^[0-9a-f]{32}\n?$/);
    expect(new Set(machineIds).size).toBe(CLONES);
  });

  test("know what time it is", async () => {
    for (const session of sessions) expect(await clockErrorS(session)).toBeLessThan(MAX_CLOCK_ERROR_S);
  });

  test("know what time it is after a wait in the pool", async () => {
    const vmms = CLONES + 1;
    await eventually("a clone waits in the pool", 20_000, () => server.vmms().length === vmms);
    const waiting = server.vmms();
    await Bun.sleep(6000);
    const session = await server.open();
    expect(await clockErrorS(session)).toBeLessThan(MAX_CLOCK_ERROR_S);
    const alive = new Set(server.vmms().map((info) => info.pid));
    expect(waiting.every((info) => alive.has(info.pid))).toBe(true);
    await session.close();
  });

  test("change after a reset", async () => {
    const [session] = sessions as [TestSession];
    const identity = "hostname; cat /etc/machine-id /proc/sys/kernel/random/uuid";
    const before = await session.output(identity);
    await session.reset();
    const after = await session.output(identity);
    const lines = new Set([...before.split("\n"), ...after.split("\n")].filter((line) => line !== ""));
    expect(lines.size).toBe(6);
  });
});

describeWithVms("the base", () => {
  const memoryPath = join(STORE_PATH, "snapshots/tools-base/memory.bin");
  const statePath = join(STORE_PATH, "snapshots/tools-base/state.bin");

  test("is not changed by the sessions over it", async () => {
    await using server = await TestServer.start();
    await (await server.open()).close();
    const hashes = () => Promise.all([memoryPath, statePath].map((path) => sha256OfFile(path)));
    const [before, writtenAt] = [await hashes(), statSync(memoryPath).mtimeMs];
    for (let count = 0; count < SESSIONS_OVER_THE_BASE; count++) {
      const session = await server.open();
      await session.writeFile("/root/note.bin", `session ${count}`);
      await session.close();
    }
    expect(await hashes()).toEqual(before);
    expect(statSync(memoryPath).mtimeMs).toBe(writtenAt);
  }, 240_000);
});
