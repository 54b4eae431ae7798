/**
 * What a `run true` takes beside other work of the server, and beside the same work without the server's part in it.
 * Usage: scripts/bench beside. Both sides take turns, so that they meet the same moods of the machine.
 */
import { TestServer, type TestSession } from "../test/support/test-server.ts";
import { printTable, Series } from "./series.ts";

/** Clones the pool makes one after the other; more than it gets done during the runs */
const POOL = 16;
const ROUNDS = 3;
const RUNS = 40;
/** Between two runs: the moments in which a refill goes on */
const PAUSE_MS = 30;
const GIB = 1_073_741_824;

const series = {
  alone: new Series("run true"),
  refilling: new Series("run true while the pool refills"),
  spinning: new Series("run true beside one that spins"),
  pouring: new Series("run true beside one that pours output"),
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
  if (pool > 0 && (clones < 1 || clones >= pool))
    throw new Error(`the pool had ${clones} of ${pool} clones after the runs`);
}

async function measureBeside(command: string, into: Series): Promise<void> {
  await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
  const [other, session] = [await server.open(), await server.open()];
  await session.output("true");
  const stop = new AbortController();
  const work = other.run(command, { timeout_s: 600 }, { timeoutMs: 600_000, signal: stop.signal });
  const ended = work.then(
    () => true,
    () => stop.signal.aborted,
  );
  await measure(session, into);
  stop.abort();
  if (!(await ended)) throw new Error(`${command} did not last as long as the runs beside it`);
}

for (let i = 0; i < ROUNDS; i++) {
  await measureRefill(0, series.alone);
  await measureRefill(POOL, series.refilling);
  await measureBeside("while :; do :; done", series.spinning);
  await measureBeside(`head -c ${GIB} /dev/zero`, series.pouring);
}
printTable(
  ["what, ms", "p50", "p99", "n"],
  Object.values(series).map((one) => one.row()),
);
const ratio = (one: Series, other: Series) => (one.percentile(50) / other.percentile(50)).toFixed(2);
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
