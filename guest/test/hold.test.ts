import { afterAll, expect, test } from "bun:test";
import { AgentProcess, type } from "./agent-process.ts";
import { endRun, outcome, parse, run, startRun } from "./agent-requests.ts";
import { removeTree, writableCgroups } from "./test-cgroup.ts";

const cgroups = writableCgroups();
const WAIT_MS = 50_000;

afterAll(async () => {
  if (cgroups) await removeTree(cgroups);
});

async function answered(agent: AgentProcess, kind: number, body: object = {}): Promise<void> {
  const stream = agent.newStream();
  agent.send(kind, stream, body);
  expect(outcome(await agent.next(stream)).ok).toBe(true);
}

async function textOf(path: string): Promise<string> {
  const file = Bun.file(path);
  return (await file.exists()) ? await file.text() : "";
}

async function untilTextOf(path: string, holds: (text: string) => boolean): Promise<string> {
  for (const deadline = Date.now() + WAIT_MS; ; await Bun.sleep(10)) {
    const text = await textOf(path);
    if (holds(text)) return text;
    if (Date.now() > deadline) throw new Error(`${path} stays ${JSON.stringify(text.slice(0, 200))}`);
  }
}

const counting = (directory: string) =>
  `echo begun; i=0; while [ ! -e ${directory}/stop ]; do i=$((i+1)); echo $i; echo $i >${directory}/count; sleep 0.02; done; echo over`;

test("runs of a held connection live on in the next one, without a deadline, and their files have all they print", async () => {
  await using agent = await AgentProcess.open();
  startRun(agent, counting(agent.directory), { timeoutMs: 5000 });
  await untilTextOf(`${agent.directory}/count`, (text) => Number(text) > 3);
  await answered(agent, type.hold);
  await agent.connect();
  const before = Number(await textOf(`${agent.directory}/count`));
  // Further on than its deadline would have let it come.
  await Bun.sleep(5100);
  await untilTextOf(`${agent.directory}/count`, (text) => Number(text) > before + 3);
  expect((await run(agent, `touch ${agent.directory}/stop`)).end).toMatchObject({ exit_code: 0 });
  const spooled = await untilTextOf(`${agent.directory}/runs/1/stdout`, (text) => text.endsWith("over\n"));
  expect(spooled).toStartWith("begun\n1\n2\n3\n");
});

test("after RELEASE runs end with their connection again", async () => {
  await using agent = await AgentProcess.open();
  const path = `${agent.directory}/count`;
  startRun(agent, counting(agent.directory));
  await answered(agent, type.hold);
  await answered(agent, type.release);
  await untilTextOf(path, (text) => Number(text) > 3);
  await agent.connect();
  const last = (await run(agent, `sleep 0.3; cat ${path}`)).stdout.toString();
  expect((await run(agent, `sleep 0.3; cat ${path}`)).stdout.toString()).toBe(last);
});

test("a run answers its connection after RELEASE as if nothing had been", async () => {
  await using agent = await AgentProcess.open();
  const stream = startRun(agent, "sleep 0.2; echo done");
  await answered(agent, type.hold);
  await answered(agent, type.release);
  expect((await endRun(agent, stream)).stdout.toString()).toBe("done\n");
});

test("RELEASE refuses a pause that cannot be, and releases all the same", async () => {
  await using agent = await AgentProcess.open();
  await answered(agent, type.hold);
  const stream = agent.newStream();
  agent.send(type.release, stream, { paused_us: -1 });
  expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
  expect((await run(agent, "echo on")).stdout.toString()).toBe("on\n");
});

test("between HOLD's answer and RELEASE the agent says nothing, and loses nothing", async () => {
  await using agent = await AgentProcess.open();
  const go = `${agent.directory}/go`;
  // However slow this process is, the run prints before HOLD, and again after it.
  const lines = "while [ $i -lt $end ]; do echo line $i; i=$((i+1)); done";
  const command = `i=0; end=15000; ${lines}; while [ ! -e ${go} ]; do sleep 0.02; done; end=30000; ${lines}`;
  const stream = startRun(agent, command, { maxOutputBytes: 1_048_576 });
  const parts = [(await agent.next(stream)).payload];
  await answered(agent, type.hold);
  while (agent.pendingFrames(stream).length > 0) parts.push((await agent.next(stream)).payload);
  agent.send(type.ping, 0);
  await Bun.write(go, "");
  await Bun.sleep(300);
  expect(agent.pendingFrames(stream)).toBeEmpty();
  expect(agent.pendingFrames(0)).toBeEmpty();
  await answered(agent, type.release);
  expect(parse(await agent.next(0))["monotonic_us"]).toBeNumber();
  const { stdout, end } = await endRun(agent, stream);
  expect(end).toMatchObject({ exit_code: 0 });
  const expected = Array.from({ length: 30_000 }, (_, index) => `line ${index}\n`);
  expect(Buffer.concat([...parts, stdout]).toString() === expected.join("")).toBe(true);
});

test.skipIf(!cgroups)("held processes stand still until the release, and a new run does not", async () => {
  await using agent = await AgentProcess.open(`${cgroups}/agent-hold`);
  const path = `${agent.directory}/count`;
  const stream = startRun(agent, counting(agent.directory));
  await untilTextOf(path, (text) => Number(text) > 3);
  await answered(agent, type.hold);
  await Bun.sleep(100);
  const held = await textOf(path);
  const fresh = startRun(agent, `echo new >${agent.directory}/new`);
  await untilTextOf(`${agent.directory}/new`, (text) => text === "new\n");
  expect(await textOf(path)).toBe(held);
  await answered(agent, type.release);
  expect((await endRun(agent, fresh)).end).toMatchObject({ exit_code: 0 });
  await untilTextOf(path, (text) => Number(text) > Number(held) + 3);
  await Bun.write(`${agent.directory}/stop`, "");
  expect((await endRun(agent, stream)).end).toMatchObject({ exit_code: 0 });
});
