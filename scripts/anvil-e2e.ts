/** What `scripts/anvil-e2e` runs: one mode's calls in the documented order, with the official client. Any wrong answer ends it. */
import { join, resolve } from "node:path";
import { within } from "../src/base/wait.ts";
import { EngineProcess } from "../test/support/engine-process.ts";
import { StdioClient } from "../test/support/stdio-client.ts";
import { check, DemoStage } from "./demo-stage.ts";

const EXECUTABLE_PATH = join(resolve(import.meta.dir, ".."), "dist/ignition-mcp");
const MARKER = "anvil-smoke-ok";
/** A first VM may have to wait for its base to be built */
const SPAWN_MS = 300_000;
const TOOLS = 19;

/** For all calls of a mode */
const MODE_MS = 900_000;
const IDLE_MS = 60_000;

/** A call that deletes what another made. */
type Deletion = [tool: string, args: Record<string, unknown>];

/** `made` gets what has to be deleted when the mode fails: the daemon may be one that goes on. */
type Mode = (stage: DemoStage, made: Deletion[]) => Promise<void>;

const MODES: Readonly<Record<string, Mode>> = {
  lifecycle: (stage, made) => useVm(stage, made, null),
  semantic: (stage, made) => useVm(stage, made, MARKER),
  flock: useFlock,
};

/** From spawn to delete. `expected` must be in the task's output; null takes any. */
async function useVm(stage: DemoStage, made: Deletion[], expected: string | null): Promise<void> {
  stage.title("A VM under a name of its own");
  const spawned = await stage.call("anvil_spawn_vm", {
    args: { session_name: "smoke" },
    timeoutMs: SPAWN_MS,
  });
  const { vm_id } = spawned.fields;
  made.push(["anvil_delete_vm", { vm_id }]);
  const vm = { session_name: "smoke" };
  check(typeof vm_id === "string" && !spawned.text.includes("agent_token"), "the answer is not that of a VM");

  stage.title("A file into it and out of it again");
  const file = { ...vm, path: "notes/smoke.txt" };
  checkStatus(await stage.call("anvil_copy_in", { args: { ...file, content: "smoke\n" } }));
  await stage.call("anvil_copy_in", { args: { ...file, content: "again\n" }, errorNames: "status 409" });
  const { fields: read } = await stage.call("anvil_copy_out", { args: file });
  check(read["content"] === "smoke\n", "the file came back changed");

  stage.title("A task");
  const task = { ...vm, prompt: `echo ${MARKER}; cat /workspace/notes/smoke.txt`, timeout_seconds: 120 };
  const ran = await stage.call("anvil_run_task", { args: task, timeoutMs: 130_000 });
  checkStatus(ran);
  if (expected !== null) check(String(ran.fields["body"]).includes(expected), `the output lacks ${expected}`);
  check(await isIdle(stage, vm), "the agent is not idle after its task");

  if (expected !== null) await outlast(stage, vm);

  stage.title("Its end");
  checkStatus(await stage.call("anvil_stop_vm", { args: vm }));
  checkStatus(await stage.call("anvil_delete_vm", { args: vm }));
  await stage.call("anvil_get_vm_health", { args: vm, errorNames: 'unknown session "smoke"' });
  await stage.call("anvil_get_vm_health", { args: { vm_id }, errorNames: "status 404" });
}

/** The end of a task's time ends what runs in the VM, not only the wait for it. */
async function outlast(stage: DemoStage, vm: Record<string, unknown>): Promise<void> {
  stage.title("A task that takes too long");
  const sleep = { ...vm, prompt: "sleep 300", timeout_seconds: 1 };
  await stage.call("anvil_run_task", { args: sleep, errorNames: "no answer within 1 s (timeout_seconds)" });
  const deadline = performance.now() + IDLE_MS;
  while (!(await isIdle(stage, vm)))
    check(performance.now() < deadline, "the agent is still busy after its task was given up");
  const { fields } = await stage.call("anvil_run_task", {
    args: { ...vm, prompt: "pgrep -x sleep || echo nothing sleeps" },
  });
  check(
    String(fields["body"]).includes("nothing sleeps"),
    "the task goes on in the VM after it was given up",
  );
}

async function isIdle(stage: DemoStage, vm: Record<string, unknown>): Promise<boolean> {
  const { fields } = await stage.call("anvil_get_vm_health", { args: vm });
  return String(fields["body"]).includes('"idle"');
}

async function useFlock(stage: DemoStage, made: Deletion[]): Promise<void> {
  stage.title("A flock of two");
  const args = { task: "say hello", roles: ["worker", "reviewer"] };
  const { fields, text } = await stage.call("anvil_spawn_flock", { args, timeoutMs: SPAWN_MS });
  const flock = { flock_id: fields["flock_id"] };
  made.push(["anvil_delete_flock", flock]);
  const agents = fields["agents"] as { agent_id: string; role: string }[];
  check(agents.map(({ role }) => role).join() === "worker,reviewer", "the agents are not those asked for");
  check(!text.includes("agent_token"), "the answer shows a token");
  const { text: listed } = await stage.call("anvil_list_flocks");
  check(listed.includes(String(flock.flock_id)), "the flock is not listed");

  stage.title("Its Town Wall");
  const post = { ...flock, agent_id: agents[0]?.agent_id, body: `${MARKER}\nsecond line` };
  await stage.call("anvil_post_townwall", { args: post });
  const { fields: history } = await stage.call("anvil_get_townwall_history", { args: flock });
  const messages = history["messages"] as { agent_id: string; body: string }[];
  const isThere = messages.some(({ agent_id, body }) => agent_id === post.agent_id && body === post.body);
  check(isThere, "the message is not on the wall as it was posted");

  stage.title("Its end");
  checkStatus(await stage.call("anvil_delete_flock", { args: flock }));
  await stage.call("anvil_get_flock", { args: flock, errorNames: "status 404" });
}

function checkStatus({ fields }: { fields: Record<string, unknown> }): void {
  const status = Number(fields["status_code"]);
  check(status >= 200 && status < 300, `the daemon answered ${status}`);
}

async function drive(mode: Mode, url: string, stop: AbortSignal): Promise<void> {
  const passed = ["PATH", "HOME", "ANVIL_API_TOKEN"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  // Settings that lie in the current directory are somebody else's
  const env = { ...Object.fromEntries(passed), ANVIL_DAEMON_URL: url, ANVIL_MCP_CONFIG: "/dev/null" };
  const client = await StdioClient.start({ command: EXECUTABLE_PATH, args: ["anvil"], env });
  await using stage = new DemoStage(client);
  const { tools } = await client.client.listTools();
  check(tools.length === TOOLS, `there are ${tools.length} tools, not ${TOOLS}`);
  const made: Deletion[] = [];
  try {
    await within(mode(stage, made), MODE_MS, "all calls to be answered", stop);
  } catch (error) {
    for (const [tool, args] of made)
      await client.call(tool, args).catch((failure) => console.error(`${tool} failed: ${failure}`));
    throw error;
  }
}

const [name = "lifecycle", ...more] = process.argv.slice(2);
const mode = Object.hasOwn(MODES, name) ? MODES[name] : undefined;
if (mode === undefined || more.length > 0) {
  console.error(`usage: scripts/anvil-e2e [${Object.keys(MODES).join("|")}]`);
  process.exit(2);
}
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => stop.abort(new Error(`${signal} ended it`)));
const given = process.env["ANVIL_DAEMON_URL"];
if (given) {
  await drive(mode, given, stop.signal);
} else {
  await using engine = await EngineProcess.start();
  await drive(mode, engine.url, stop.signal);
}
console.log(`\nanvil-e2e: ${name} passed`);
