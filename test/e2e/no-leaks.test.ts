import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { remainingPaths } from "../support/leftovers.ts";
import { descendantsOf, openDescriptors } from "../support/processes.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually, TestServer } from "../support/test-server.ts";

const ROUNDS = 100;
/** Two at a time keep both processors of a small machine busy. */
const AT_ONCE = 2;
const WARM_UP_ROUNDS = 10;
const MIB = 1_048_576;
const MAX_GROWTH_BYTES = 64 * MIB;
/** Bun starts threads of its pool when it first has work for them, at most a few; one leaked per round would be ninety. */
const LATE_POOL_THREADS = 4;

describeWithVms("opening and closing a hundred sessions", () => {
  let server: TestServer;
  let temporaryPath: string;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    temporaryPath = server.home.path;
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function rounds(count: number): Promise<void> {
    let left = count;
    const lane = async () => {
      while (left-- > 0) {
        const session = await server.open();
        expect(await session.output("echo round")).toBe("round\n");
        await session.close();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }

  function residentBytes(): number {
    const pages = Number(readFileSync(`/proc/${server.pid}/statm`, "utf8").split(" ")[1]);
    return pages * 4096;
  }

  const holdings = () => ({
    processes: descendantsOf(server.pid).length,
    descriptors: openDescriptors(server.pid),
    threads: readdirSync(`/proc/${server.pid}/task`).length,
    runtimePaths: remainingPaths(server.home),
    temporaryFiles: readdirSync(temporaryPath).sort(),
  });

  test("leaves the server with what it had before", async () => {
    await rounds(WARM_UP_ROUNDS);
    const [before, beforeBytes] = [holdings(), residentBytes()];
    await rounds(ROUNDS - WARM_UP_ROUNDS);
    await eventually(`${JSON.stringify(before)} again, not ${JSON.stringify(holdings())}`, 5000, () => {
      const now = holdings();
      return (
        now.processes <= before.processes &&
        now.descriptors <= before.descriptors &&
        now.threads <= before.threads + LATE_POOL_THREADS &&
        now.runtimePaths.length <= before.runtimePaths.length
      );
    });
    expect(before.processes).toBe(0);
    expect(holdings().temporaryFiles).toEqual(before.temporaryFiles);
    expect(residentBytes() - beforeBytes).toBeLessThan(MAX_GROWTH_BYTES);
  }, 240_000);
});
