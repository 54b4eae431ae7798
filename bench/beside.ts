/**
 * What a `run true` takes beside other work of the server, and beside the same work without the server's part in it.
 * Usage: scripts/bench beside. Both sides take turns, so that they meet the same moods of the machine.
 */
import { TestServer, type TestSession } from "../test/support/test-server.ts";
import { printTable, Series } from "./series.ts";

/** Clones the pool makes one after the other; more than it gets done during the runs */
const POOL = 16;
const ROUNDS = 8;
const RUNS = 20;
/** Between two runs: the moments in which a refill goes on */
const PAUSE_MS = 30;
const GIB = 1_073_741_824;

const series = {
  alone: new Series("run true"),
  refilling: new Series("run true while the pool refills"),
  spinning: new Series("run true beside a silent loop"),
  pouring: new Series("run true beside 1 GiB of output"),
};

async function measure(session: TestSession, into: Series): Promise<void> {
  for (let i = 0; i < RUNS; i++) {
    await into.time(() => session.output("true"));
    await Bun.sleep(PAUSE_MS);
  }
}

/** The pool must not be full before the runs are over, or the last of them measured nothing. */
async function measureRefill(pool: number, into: Series): Promise<void> {
  await using server = await TestServer.start({ IGN_MCP_POOL: String(pool) });
  const session = await server.open();
  await session.output("true");
  await measure(session, into);
  const clones = server.vmms().length - 1;
  if (clones >= pool && pool > 0) throw new Error(`the pool had all its ${pool} clones before the last run`);
  if (clones < 1 && pool > 0) throw new Error("the pool made no clone during the runs");
}

/** The work of `other` takes a processor either way: what differs is what the server has to do for it. */
async function measureBeside(
  other: TestSession,
  session: TestSession,
  command: string,
  into: Series,
): Promise<void> {
  const stop = new AbortController();
  let hasEnded = false;
  const work = other.run(command, { timeout_s: 600 }, { timeoutMs: 600_000, signal: stop.signal }).then(
    () => {
      hasEnded = true;
    },
    (error) => {
      if (!stop.signal.aborted) throw error;
    },
  );
  await measure(session, into);
  if (hasEnded) throw new Error(`${command} ended before the runs beside it`);
  stop.abort();
  await work;
}

for (let i = 0; i < ROUNDS; i++) {
  await measureRefill(0, series.alone);
  await measureRefill(POOL, series.refilling);
}
await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
const [other, session] = [await server.open(), await server.open()];
await session.output("true");
for (let i = 0; i < ROUNDS; i++) {
  await measureBeside(other, session, "while :; do :; done", series.spinning);
  await measureBeside(other, session, `head -c ${GIB} /dev/zero`, series.pouring);
}
printTable(
  ["what, ms", "p50", "p99", "n"],
  Object.values(series).map((one) => one.row()),
);
const ratio = (one: Series, beside: Series) => (one.percentile(50) / beside.percentile(50)).toFixed(2);
console.log("");
printTable(
  ["ratio, p50", "here", "reach"],
  [
    ["run true while the pool refills / without a pool", ratio(series.refilling, series.alone), "<= 1.25"],
    [
      "run true beside 1 GiB of output / beside a silent loop",
      ratio(series.pouring, series.spinning),
      "<= 2",
    ],
  ],
);
