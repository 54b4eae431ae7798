/**
 * Two builds beside each other, taking turns, so that both meet the same moods of the machine.
 * Usage: scripts/bench against DIRECTORY. That is a checkout of another commit in which scripts/build and `base build` ran.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { TestHome } from "../test/support/real-vm.ts";
import { StdioClient } from "../test/support/stdio-client.ts";
import { printTable, Series } from "./series.ts";

const STARTS = 20;
const RUNS = 150;
const WARM_UP_RUNS = 10;
const OPENS = 25;
/** Long enough for the pool to make the next clone ready */
const REFILL_MS = 1000;

class Build {
  readonly executablePath: string;
  readonly version: Series;
  readonly initialize: Series;
  readonly run: Series;
  readonly inGuest: Series;
  readonly hit: Series;
  readonly #store: string;
  readonly #home: TestHome;

  constructor(name: string, directory: string, home: TestHome) {
    this.executablePath = join(directory, "dist/ignition-mcp");
    this.#store = join(directory, ".cache/store");
    if (!existsSync(join(this.#store, "snapshots")) || !existsSync(this.executablePath))
      throw new Error(`${directory} has no executable and base; run scripts/build and base build there`);
    this.#home = home;
    this.version = new Series(`--version, ${name}`);
    this.initialize = new Series(`initialize, ${name}`);
    this.run = new Series(`run true, ${name}`);
    this.inGuest = new Series(`the agent's own time, ${name}`);
    this.hit = new Series(`open_session, pool hit, ${name}`);
  }

  start(poolSize: number): Promise<StdioClient> {
    const env = this.#home.env({ IGN_MCP_STORE: this.#store, IGN_MCP_POOL: String(poolSize) });
    return StdioClient.start({ command: this.executablePath, env });
  }
}

async function measureStarts(builds: Build[]): Promise<void> {
  for (let i = 0; i < STARTS; i++) {
    for (const { version, executablePath } of builds)
      await version.time(() => Bun.spawn([executablePath, "--version"], { stdout: "ignore" }).exited);
    for (const build of builds) {
      await using _client = await build.initialize.time(() => build.start(0));
    }
  }
}

async function measureRuns(builds: Build[]): Promise<void> {
  await using clients = new AsyncDisposableStack();
  const sessions = [];
  for (const build of builds) {
    const client = clients.use(await build.start(0));
    const { session_id } = (await client.callOk("open_session", {}, { timeoutMs: 120_000 })).fields;
    const runTrue = () => client.callOk("run", { session_id, command: "true" });
    for (let i = 0; i < WARM_UP_RUNS; i++) await runTrue();
    sessions.push({ build, runTrue });
  }
  for (let i = 0; i < RUNS; i++) {
    for (const { build, runTrue } of sessions) {
      const { fields } = await build.run.time(runTrue);
      build.inGuest.add(Number(fields["duration_ms"]));
    }
  }
}

async function measureHits(builds: Build[]): Promise<void> {
  await using clients = new AsyncDisposableStack();
  const opened = [];
  for (const build of builds) {
    const client = clients.use(await build.start(1));
    await client.callOk("close", (await client.callOk("open_session", {}, { timeoutMs: 120_000 })).fields);
    opened.push({ build, client });
  }
  for (let i = 0; i < OPENS; i++) {
    for (const { build, client } of opened) {
      await Bun.sleep(REFILL_MS);
      const { fields } = await build.hit.time(() => client.callOk("open_session"));
      await client.callOk("close", fields);
    }
  }
}

const [other] = process.argv.slice(2);
if (other === undefined) throw new Error("usage: scripts/bench against DIRECTORY");
using home = new TestHome();
const builds = [
  new Build("there", resolve(other), home),
  new Build("here", resolve(import.meta.dir, ".."), home),
];
await measureStarts(builds);
await measureRuns(builds);
await measureHits(builds);
const kinds = ["version", "initialize", "run", "inGuest", "hit"] as const;
printTable(
  ["what", "p50", "p99", "n"],
  kinds.flatMap((kind) => builds.map((build) => build[kind].row())),
);
