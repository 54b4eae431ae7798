/**
 * Loads the compiled engine with VMs that all run tasks, copy files, take snapshots and post on a wall, and checks every answer.
 * Usage: scripts/bench engine [SECONDS] [VMS] [SEED]   (default: 180 8 1). Ends with 1 when an answer was wrong or did not come.
 */
import { TestEngine } from "../test/support/test-engine.ts";
import { runMixedLoad } from "./mixed-load.ts";
import { printTable } from "./series.ts";

const [seconds = 180, vms = 8, seed = 1] = process.argv.slice(2).map(Number);
await using engine = await TestEngine.start();
const startedAt = performance.now();
const { times, posts, failures } = await runMixedLoad(engine, { vms, seconds, seed });
const tookS = (performance.now() - startedAt) / 1000;
printTable(
  ["operation, ms", "p50", "p99", "n"],
  times.all.map((one) => one.row()),
);
const answers = times.all.reduce((sum, { count }) => sum + count, 0);
console.log(
  `\n${vms} VMs, ${tookS.toFixed(0)} s: ${answers} operations, each answer checked; ${posts} posts on the wall.`,
);
for (const failure of failures) console.log(`WRONG: ${failure}`);
console.log(`${failures.length} wrong`);
process.exitCode = failures.length === 0 ? 0 : 1;
