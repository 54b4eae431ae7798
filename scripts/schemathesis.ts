/**
 * Asks an engine over machines without guests whatever schemathesis makes of docs/openapi.json. No prompt is run anywhere.
 * Usage: bun scripts/schemathesis.ts EXECUTABLE [SEED]. Ends with 1 when something was found; the last line is `N passed, N failed`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listen } from "../src/engine/listener.ts";
import { FakeEngine } from "../test/support/fake-engine.ts";
import { flockOf } from "../test/support/fake-flocks.ts";
import { startSilentRun } from "../test/support/silent-run.ts";
import {
  operations,
  type Seeds,
  settingsWithDrawnIds,
  settingsWithFixedIds,
} from "./schemathesis-settings.ts";
import { countSuite, type SuiteCount } from "./sum-tests.ts";

const DEFAULT_SEED = "1";
const REQUEST_S = "10";
/** Of the open end of a wall */
const STREAM_EVENTS = 4;

/** What each run makes its requests from. Random ones go on until its time is over; `examples` bounds one pass over an operation. */
const RUNS = [
  { name: "edge values", phases: "coverage", settings: settingsWithFixedIds, seconds: 40, examples: 1 },
  { name: "random requests", phases: "fuzzing", settings: settingsWithDrawnIds, seconds: 25, examples: 12 },
  { name: "sequences", phases: "stateful", settings: settingsWithDrawnIds, seconds: 15, examples: 12 },
];

/** One of everything for each operation, so that none takes away what another needs. */
async function seed(engine: FakeEngine): Promise<Seeds> {
  const seeds: Seeds = {
    vms: [],
    snapshots: [],
    flocks: [],
    tenants: ["acme"],
    agents: ["worker-1", "reviewer-1"],
    files: ["greeting"],
    streams: ["1"],
  };
  for (const _ of operations) {
    const vm = await engine.vm({ tenant_id: "acme" });
    await engine.request("PUT", `/vms/${vm}/workspace?path=greeting&overwrite=true`, { body: "hello" });
    const { json } = await engine.post(`/vms/${vm}/snapshot`, { type: "full" });
    const { flock_id: flock } = await flockOf(engine, ["worker", "reviewer"]);
    await engine.post(`/flocks/${flock}/post`, { agent_id: "worker-1", body: "hello" });
    seeds.vms.push(vm);
    seeds.snapshots.push((json as { snapshot_id: string }).snapshot_id);
    seeds.flocks.push(flock);
  }
  return seeds;
}

/** A snapshot as another engine would send it. */
async function writeBundle(engine: FakeEngine, path: string): Promise<void> {
  const vm = await engine.vm();
  const { json } = await engine.post(`/vms/${vm}/snapshot`, { type: "full" });
  const { snapshot_id: id } = json as { snapshot_id: string };
  await Bun.write(
    path,
    await (await engine.engine.app.request(`/snapshots/${id}/export`, { method: "POST" })).bytes(),
  );
  await engine.request("DELETE", `/snapshots/${id}`);
}

async function run(one: (typeof RUNS)[number], executable: string, randomSeed: string): Promise<SuiteCount> {
  await using fake = await FakeEngine.open({ IGN_ENGINE_MAX_VMS: "10000" }, startSilentRun);
  const path = (name: string) => fake.directory.join(name);
  const settings = `max-stream-events = ${STREAM_EVENTS}\n${one.settings(await seed(fake))}`;
  await Bun.write(path("schemathesis.toml"), settings);
  await writeBundle(fake, path("bundle.tar"));
  const listener = await listen(fake.engine.app, { host: "127.0.0.1", port: 0 });
  const { port } = listener.address as { port: number };
  const child = Bun.spawn(
    [
      executable,
      "--config-file",
      path("schemathesis.toml"),
      "run",
      join(import.meta.dir, "../docs/openapi.json"),
    ]
      .concat([
        "--url",
        `http://127.0.0.1:${port}`,
        "--phases",
        one.phases,
        "--seed",
        randomSeed,
        "--no-color",
      ])
      .concat([
        "--max-examples",
        String(one.examples),
        "--max-time",
        String(one.seconds),
        "--request-timeout",
        REQUEST_S,
      ])
      .concat(["--continue-on-failure", "--warnings", "off", "--generation-database", "none"])
      .concat(["--report", "junit", "--report-junit-path", path("junit.xml")]),
    {
      cwd: fake.directory.path,
      env: {
        ...process.env,
        SCHEMATHESIS_HOOKS: "schemathesis-bundles",
        PYTHONPATH: import.meta.dir,
        PYTHONDONTWRITEBYTECODE: "1",
        IGNITION_BUNDLE: path("bundle.tar"),
      },
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  const status = await child.exited;
  await fake.engine.closeStreams();
  await listener.stop();
  for (const { level, message, fields } of fake.logged)
    if (level === "error") console.log(`the engine logged: ${message}`, fields);
  return countSuite({ name: one.name, log: "", status, junit: readFileSync(path("junit.xml"), "utf8") });
}

const [executable, randomSeed = DEFAULT_SEED] = process.argv.slice(2);
const counts: SuiteCount[] = [];
for (const one of RUNS) counts.push(await run(one, executable!, randomSeed));
const sum = (key: "passed" | "failed") => counts.reduce((total, count) => total + count[key], 0);
for (const failure of counts.flatMap(({ failures }) => failures)) console.log(`FAILED: ${failure}`);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
process.exitCode = sum("failed") === 0 ? 0 : 1;
