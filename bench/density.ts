/**
 * How many idle sessions fit, what each takes, and how long an open takes as their number grows.
 * Usage: scripts/bench density. Stops at 64 sessions, or when they hold 8 GiB together.
 */
import { EXECUTABLE_PATH, TestHome } from "../test/support/real-vm.ts";
import { StdioClient } from "../test/support/stdio-client.ts";
import { vmMemory } from "./memory.ts";
import { printTable } from "./series.ts";

const SESSIONS = 64;
const BUDGET_MIB = 8192;
const SHOWN = new Set([1, 8, 32, SESSIONS]);
/** Opens around a count whose middle value stands for it */
const NEIGHBOURS = 5;

using home = new TestHome();
const env = home.env({ IGN_MCP_POOL: "0", IGN_MCP_MAX_SESSIONS: String(SESSIONS) });
await using client = await StdioClient.start({ command: EXECUTABLE_PATH, env });
// The server's first open also opens the base, which says nothing about how many sessions there are.
const warmUp = await client.callOk("open_session", {}, { timeoutMs: 300_000 });
await client.callOk("close", warmUp.fields);
const openMs: number[] = [];
const rows: string[][] = [];
for (let count = 1; count <= SESSIONS; count++) {
  const startedAt = performance.now();
  await client.callOk("open_session", {}, { timeoutMs: 300_000 });
  openMs.push(performance.now() - startedAt);
  if (!SHOWN.has(count)) continue;
  const { pssMib, privateMib } = vmMemory(client.pid);
  const latest = openMs.slice(-NEIGHBOURS).toSorted((a, b) => a - b);
  const middle = latest[Math.floor(latest.length / 2)]!;
  rows.push([
    String(count),
    middle.toFixed(0),
    (pssMib / count).toFixed(1),
    (privateMib / count).toFixed(1),
    pssMib.toFixed(0),
  ]);
  if (pssMib > BUDGET_MIB) break;
}
printTable(["sessions", "open, ms", "PSS each, MiB", "private each, MiB", "PSS together, MiB"], rows);
const firsts = openMs.slice(0, NEIGHBOURS).toSorted((a, b) => a - b);
const [first, last] = [firsts[Math.floor(firsts.length / 2)]!, Number(rows.at(-1)?.[1])];
console.log(
  `\nopen at ${rows.at(-1)?.[0]} sessions / first open: ${(last / first).toFixed(2)} (reach: <= 2)`,
);
