/**
 * What a client of the compiled executable waits for, beside the least it could be, measured in the same run.
 * Usage: scripts/bench. Figures vary with the machine; the ratios at the end are what docs/SPECIFICATION.md promises.
 */

import { buildBase } from "../src/vm/base-builder.ts";
import { RuntimeDirectory } from "../src/vm/runtime-directory.ts";
import { EXECUTABLE_PATH, TestHome } from "../test/support/real-vm.ts";
import { StdioClient } from "../test/support/stdio-client.ts";
import { bareRestore } from "./bare-restore.ts";
import { configFromEnvironment } from "./environment.ts";
import { vmMemory } from "./memory.ts";
import { printTable, Series } from "./series.ts";
import { transferBack } from "./transfer-back.ts";

const MIB = 1_048_576;
const STARTS = 20;
const OPENS = 10;
const RUNS = 60;
const WRITES = 5;
/** VMs whose memory is measured together, so that what they share counts once */
const SHARING = 8;
/** Less than a model needs between two calls */
const THOUGHT_MS = 400;
/** Long enough for the pool to make the next clone ready */
const REFILL_MS = 2500;

const series = {
  version: new Series("--version, start to exit"),
  initialize: new Series("start to the answer to initialize"),
  bare: new Series("bare QEMU restore"),
  bareRun: new Series("bare: first guest round trip"),
  miss: new Series("open_session, pool miss"),
  hit: new Series("open_session, pool hit"),
  firstRun: new Series("first run, at once after such an open"),
  laterFirstRun: new Series("first run, 400 ms after such an open"),
  run: new Series("run true"),
  inGuest: new Series("run true: the agent's own time"),
  overhead: new Series("run true: beyond the agent's time"),
  write1: new Series("write_file 1 MiB"),
  write32: new Series("write_file 32 MiB"),
  read32: new Series("read back 32 MiB (agent stream)"),
  reset: new Series("reset"),
};

function start(home: TestHome, pool: string): Promise<StdioClient> {
  return StdioClient.start({
    command: EXECUTABLE_PATH,
    env: home.env({ IGN_MCP_POOL: pool, IGN_MCP_MAX_SESSIONS: "64" }),
  });
}

async function open(client: StdioClient): Promise<string> {
  return String((await client.callOk("open_session")).fields["session_id"]);
}

async function measureStart(home: TestHome): Promise<void> {
  for (let i = 0; i < STARTS; i++) {
    await series.version.time(() => Bun.spawn([EXECUTABLE_PATH, "--version"], { stdout: "ignore" }).exited);
    const client = await series.initialize.time(() => start(home, "0"));
    await client[Symbol.asyncDispose]();
  }
}

/** Floor and miss take turns, so that both meet the same moods of the machine. */
async function measureMisses(home: TestHome): Promise<void> {
  const config = configFromEnvironment(home);
  const base = await buildBase(config, {
    name: config.baseName,
    force: false,
    progress: () => {},
    signal: AbortSignal.timeout(600_000),
  });
  using runtime = RuntimeDirectory.open([`${home.path}/bare`]);
  await using client = await start(home, "0");
  await client.callOk("close", { session_id: await open(client) });
  for (let i = 0; i < OPENS; i++) {
    const { restoreMs, roundTripMs } = await bareRestore(base, runtime);
    series.bare.add(restoreMs);
    series.bareRun.add(roundTripMs);
    const id = await series.miss.time(() => open(client));
    await client.callOk("close", { session_id: id });
  }
  const back = await transferBack(base, runtime, 32 * MIB, WRITES);
  for (const ms of back) series.read32.add(ms);
}

async function measureHits(home: TestHome): Promise<void> {
  await using client = await start(home, "1");
  await client.callOk("close", { session_id: await open(client) });
  for (let i = 0; i < 2 * OPENS; i++) {
    await Bun.sleep(REFILL_MS);
    const session_id = await series.hit.time(() => open(client));
    if (i % 2 === 1) await Bun.sleep(THOUGHT_MS);
    const first = i % 2 === 1 ? series.laterFirstRun : series.firstRun;
    await first.time(() => client.callOk("run", { session_id, command: "true" }));
    await client.callOk("close", { session_id });
  }
  await Bun.sleep(REFILL_MS);
}

async function measureCalls(home: TestHome): Promise<void> {
  await using client = await start(home, "0");
  const session_id = await open(client);
  for (let i = 0; i < RUNS; i++) {
    const startedAt = performance.now();
    const { fields } = await client.callOk("run", { session_id, command: "true" });
    const totalMs = performance.now() - startedAt;
    series.run.add(totalMs);
    series.inGuest.add(Number(fields["duration_ms"]));
    series.overhead.add(totalMs - Number(fields["duration_ms"]));
  }
  for (const [bytes, times] of [
    [MIB, series.write1],
    [32 * MIB, series.write32],
  ] as const) {
    const content_base64 = Buffer.alloc(bytes, "ignition").toString("base64");
    for (let i = 0; i < WRITES; i++) {
      await times.time(() =>
        client.callOk("write_file", { session_id, path: "/root/bench.bin", content_base64 }),
      );
    }
  }
  for (let i = 0; i < WRITES; i++) await series.reset.time(() => client.callOk("reset", { session_id }));
}

function memoryRow(name: string, client: StdioClient): string[] {
  const { pssMib, privateMib } = vmMemory(client.pid);
  return [name, (pssMib / SHARING).toFixed(1), (privateMib / SHARING).toFixed(1)];
}

async function measurePooledMemory(home: TestHome): Promise<string[]> {
  await using client = await start(home, String(SHARING));
  await client.callOk("close", { session_id: await open(client) });
  while (vmMemory(client.pid).processes < SHARING) await Bun.sleep(100);
  await Bun.sleep(REFILL_MS);
  return memoryRow("in the pool", client);
}

async function measureMemory(home: TestHome): Promise<string[][]> {
  await using client = await start(home, "0");
  const rows: string[][] = [];
  const ids: string[] = [];
  const row = (name: string) => rows.push(memoryRow(name, client));
  for (let i = 0; i < SHARING; i++) ids.push(await open(client));
  row("idle after open");
  for (const session_id of ids) await client.callOk("run", { session_id, command: "true" });
  row("after open and one true");
  for (const session_id of ids) {
    await client.callOk("run", {
      session_id,
      command: "python3 -c 'print(1)'; echo 'int main(){}' > a.c && gcc a.c",
      timeout_s: 120,
    });
  }
  row("after python3 and gcc");
  return rows;
}

function ratio(name: string, value: number, limit: string): string[] {
  return [name, value.toFixed(2), limit];
}

using home = new TestHome();
await measureStart(home);
await measureMisses(home);
await measureHits(home);
await measureCalls(home);
const memory = [await measurePooledMemory(home), ...(await measureMemory(home))];
const privateMib = (when: string) => Number(memory.find(([name]) => name === when)?.[2]);
const p50 = (one: Series) => one.percentile(50);
console.log("\nTimes, ms");
printTable(
  ["what", "p50", "p99", "n"],
  Object.values(series).map((one) => one.row()),
);
console.log(`\nMemory of each of ${SHARING}, MiB`);
printTable(["when", "PSS", "private"], memory);
console.log("\nRatios and rates, p50");
printTable(
  ["what", "here", "reach"],
  [
    ratio("start to the answer to initialize, ms", p50(series.initialize), "< 150"),
    ratio("open_session, pool hit, ms", p50(series.hit), "<= 20"),
    ratio("pool hit / pool miss", p50(series.hit) / p50(series.miss), "<= 0.20"),
    ratio(
      "pool miss / (bare restore + one guest round trip)",
      p50(series.miss) / (p50(series.bare) + p50(series.bareRun)),
      "<= 1.50",
    ),
    ratio("run true beyond the agent's time, ms", p50(series.overhead), "< 3"),
    ratio(
      "run true beyond the agent's time / the agent's",
      p50(series.overhead) / p50(series.inGuest),
      "<= 0.50",
    ),
    ratio("private memory in the pool, MiB", privateMib("in the pool"), "<= 25"),
    ratio("private memory after open and one true, MiB", privateMib("after open and one true"), "< 35"),
    ratio("private memory after python3 and gcc, MiB", privateMib("after python3 and gcc"), "< 130"),
    ratio("write_file 32 MiB, MiB/s", 32_000 / p50(series.write32), "> 25"),
    ratio("read back 32 MiB, MiB/s", 32_000 / p50(series.read32), "> 25"),
  ],
);
