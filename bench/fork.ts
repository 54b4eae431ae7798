/**
 * What a checkpoint costs the session it is of, and what opening from one takes beside opening from the base.
 * Usage: scripts/bench fork. Open and fork take turns, so that both meet the same moods of the machine.
 */
import { statfsSync } from "node:fs";
import { checkpoint, ForkingHome, fork } from "../test/support/forks.ts";
import type { TestServer, TestSession } from "../test/support/test-server.ts";
import { printTable, Series } from "./series.ts";

const MIB = 1_048_576;
const CHECKPOINTS = 7;
const OPENS = 10;

async function checkpoints(server: TestServer, session: TestSession, name: string): Promise<string[]> {
  const pause = new Series(name);
  const call = new Series(name);
  const written = new Series(name);
  for (let i = 0; i < CHECKPOINTS; i++) {
    const { paused_ms, bytes_written, checkpoint_id } = await call.time(() => checkpoint(server, session));
    pause.add(paused_ms);
    written.add(bytes_written / MIB);
    await home.removeCheckpoint(checkpoint_id);
  }
  const p50 = (one: Series) => one.percentile(50).toFixed(1);
  return [name, p50(pause), pause.percentile(99).toFixed(1), p50(written), p50(call), String(call.count)];
}

async function opens(server: TestServer, session: TestSession): Promise<Series[]> {
  const series = ["open_session, pool miss", "first run", "fork", "first run in a fork"].map(
    (name) => new Series(name),
  );
  const [open, firstRun, forked, forkRun] = series as [Series, Series, Series, Series];
  const { checkpoint_id } = await checkpoint(server, session);
  for (let i = 0; i < OPENS; i++) {
    const plain = await open.time(() => server.open());
    await firstRun.time(() => plain.output("true"));
    await plain.close();
    const copy = await forked.time(() => fork(server, checkpoint_id));
    await forkRun.time(() => copy.output("true"));
    await copy.close();
  }
  return series;
}

await using home = new ForkingHome();
const server = await home.start();
const session = await server.open();
await session.output("true");
const rows = [await checkpoints(server, session, "after one true")];
await session.output("python3 -c 'print(1)'; echo 'int main(){}' >a.c && gcc a.c");
rows.push(await checkpoints(server, session, "after python3 and gcc"));
await session.output("dd if=/dev/urandom of=/root/data bs=1M count=64 2>/dev/null", { timeout_s: 120 });
rows.push(await checkpoints(server, session, "after writing 64 MiB"));
const times = await opens(server, session);
console.log(`File system of the store: type ${statfsSync(home.store.path).type.toString(16)}`);
printTable(["checkpoint", "pause p50, ms", "pause max, ms", "written, MiB", "call, ms", "n"], rows);
console.log("");
printTable(
  ["open, ms", "p50", "p99", "n"],
  times.map((one) => one.row()),
);
const [open, , forked] = times as [Series, Series, Series];
const ratio = (forked.percentile(50) / open.percentile(50)).toFixed(2);
console.log(`\nfork / open_session without a pool: ${ratio} (reach: <= 1.25)`);
