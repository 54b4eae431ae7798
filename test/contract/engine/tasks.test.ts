import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf } from "../../support/fake-flocks.ts";
import { startHostRun } from "../../support/host-run.ts";

/** A profile of the operator's. */
function writeProfile(engine: FakeEngine, name: string, yaml: string): void {
  const dir = join(engine.env["IGN_ENGINE_PROFILES"]!, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "profile.yaml"), yaml);
}

const task = (engine: FakeEngine, id: string, prompt: string, query = "") =>
  engine.post(`/vms/${id}/tasks${query}`, { prompt });

test("a task answers what its program printed", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { status, json } = await task(engine, id, "pwd; echo 'it works'");
  expect(status).toBe(200);
  expect(json).toEqual({ output: expect.stringMatching(/\/workspace\nit works\n$/) });
});

test("a task that fails answers 500 with what it printed and why", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { status, json } = await task(engine, id, "echo half; echo no luck >&2; exit 3");
  expect([status, json]).toEqual([500, { output: "half\n", error: "exit status 3: no luck" }]);
});

test("a task needs a prompt, a VM, JSON, and at most 1 MiB", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  for (const body of [{}, { prompt: "" }]) {
    const { status, text } = await engine.post(`/vms/${id}/tasks`, body);
    expect([status, text]).toEqual([400, "prompt required"]);
  }
  expect((await engine.post(`/vms/${id}/tasks`, { prompt: 5 })).status).toBe(400);
  const unknown = await task(engine, "vm-1", "true");
  expect([unknown.status, unknown.json]).toEqual([404, { error: "vm not found" }]);
  expect((await task(engine, id, "#".repeat(1_048_576))).status).toBe(413);
  const plain = { body: "x", headers: { "content-type": "text/plain", "content-length": "1" } };
  expect((await engine.request("POST", `/vms/${id}/tasks`, plain)).status).toBe(415);
});

test("a VM has one task at a time, and says in its health that it is busy", async () => {
  await using engine = await FakeEngine.open();
  const [id, other] = [await engine.vm(), await engine.vm()];
  const first = task(engine, id, "until [ -e go ]; do sleep 0.01; done; echo first");
  await eventually("the task runs", () => engine.engine.parts.tasks.isBusy(id));
  expect((await engine.get(`/vms/${id}/health`)).json).toEqual({ status: "busy" });
  for (const query of ["", "?stream=1"]) {
    const second = await task(engine, id, "true", query);
    expect([second.status, second.text]).toEqual([503, "agent busy"]);
  }
  expect((await task(engine, other, "true")).status).toBe(200);
  await engine.request("PUT", `/vms/${id}/workspace?path=go`, { body: "" });
  expect((await first).json).toEqual({ output: "first\n" });
  expect((await engine.get(`/vms/${id}/health`)).json).toEqual({ status: "idle" });
});

test("a task that too many tasks led to answers 508", async () => {
  await using engine = await FakeEngine.open({ EPHEMERA_MAX_TASK_DEPTH: "2" });
  const id = await engine.vm();
  const at = (depth: string) => {
    const body = JSON.stringify({ prompt: "echo $EPHEMERA_TASK_DEPTH" });
    const headers = {
      "content-type": "application/json",
      "content-length": String(body.length),
      "x-ephemera-task-depth": depth,
    };
    return engine.request("POST", `/vms/${id}/tasks`, { body, headers });
  };
  expect((await at("1")).json).toEqual({ output: "2\n" });
  const tooDeep = await at("2");
  expect([tooDeep.status, tooDeep.json]).toEqual([508, { error: "task depth limit reached (2)" }]);
  expect((await at("deep")).status).toBe(400);
});

test("a stream tells what is printed as it appears, and the result at last", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { status, headers, text } = await task(
    engine,
    id,
    "echo one; sleep 0.05; echo two; exit 1",
    "?stream=1",
  );
  expect([status, headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  const frames = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(frames.at(-1)).toEqual({ type: "result", output: "one\ntwo\n", error: "exit status 1" });
  const progress = frames.slice(0, -1);
  expect(progress.every(({ type }) => type === "progress")).toBe(true);
  expect(progress.map((frame) => frame.text).join("")).toBe("one\ntwo\n");
});

test("a client that goes away ends its task, with and without a stream", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  for (const query of ["", "?stream=1"]) {
    const gone = new AbortController();
    const body = JSON.stringify({ prompt: "echo started; sleep 60" });
    const headers = { "content-type": "application/json", "content-length": String(body.length) };
    const path = `/vms/${id}/tasks${query}`;
    const asked = engine.engine.app.request(path, { method: "POST", body, headers, signal: gone.signal });
    await eventually("the task runs", () => engine.engine.parts.tasks.isBusy(id));
    gone.abort();
    await eventually("the task is gone", () => !engine.engine.parts.tasks.isBusy(id));
    await (await asked).text();
  }
  expect(engine.logged.filter(({ level }) => level === "error")).toEqual([]);
});

test("a paused VM answers 409, a stopped one and one whose agent is lost 502", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const vm = engine.engine.parts.vms.get(id);
  await vm.pause();
  const paused = await task(engine, id, "true");
  expect([paused.status, paused.json]).toEqual([409, { error: "vm is paused" }]);
  await vm.resume();
  engine.machines.of(id).isAnswering = false;
  const lost = await task(engine, id, "true");
  expect([lost.status, lost.json]).toEqual([
    502,
    { error: "agent unreachable: the connection to the agent ended" },
  ]);
  await vm.stop();
  const stopped = await task(engine, id, "true");
  expect([stopped.status, stopped.json]).toEqual([502, { error: "agent unreachable: the VM was stopped" }]);
});

test("a profile's program gets instructions and prompt on stdin or as an argument, in its environment", async () => {
  await using engine = await FakeEngine.open();
  writeProfile(
    engine,
    "reader",
    "environment: {GREETING: it's}\nsystem_prompt: Be brief.\ntask_command: echo $GREETING; cat\n",
  );
  writeProfile(engine, "echoer", "task_command: printf '%s|'\nprompt: argument\n");
  const reader = await engine.vm({ profile: "reader" });
  expect((await task(engine, reader, "Hello?")).json).toEqual({
    output: "it's\n[SYSTEM INSTRUCTIONS]\nBe brief.\n\n[USER TASK]\nHello?",
  });
  const echoer = await engine.vm({ profile: "echoer" });
  expect((await task(engine, echoer, "it's $HOME\n`x`")).json).toEqual({ output: "it's $HOME\n`x`|" });
  expect((await engine.get("/vms")).json).toMatchObject([{ profile: "reader" }, { profile: "echoer" }]);
});

test("the shell profile takes scripts that read their input, and of any length", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  expect((await task(engine, id, "cat; echo after")).json).toEqual({ output: "after\n" });
  expect((await task(engine, id, `${"# padding\n".repeat(50_000)}echo long`)).json).toEqual({
    output: "long\n",
  });
});

test("a prompt that its program cannot be given is refused with 400 before anything runs", async () => {
  await using engine = await FakeEngine.open();
  writeProfile(engine, "echoer", "task_command: printf '%s|'\nprompt: argument\n");
  const id = await engine.vm({ profile: "echoer" });
  for (const [prompt, error] of [
    ["a\0b", "the prompt has a NUL in it"],
    ["x".repeat(131_072), "the prompt has 131072 bytes"],
  ] as const) {
    for (const query of ["", "?stream=1"]) {
      const refused = await task(engine, id, prompt, query);
      expect([refused.status, refused.json]).toEqual([400, { error: expect.stringContaining(error) }]);
    }
  }
  expect((await task(engine, id, "x".repeat(100_000))).json).toEqual({ output: `${"x".repeat(100_000)}|` });
});

test("a session's name reaches the program, and what cannot be one is refused", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const prompt = "env | grep ^EPHEMERA_TASK_SESSION= || echo none";
  const ask = (session: string, query = "") => engine.post(`/vms/${id}/tasks${query}`, { prompt, session });
  expect((await task(engine, id, prompt)).json).toEqual({ output: "none\n" });
  expect((await ask("")).json).toEqual({ output: "none\n" });
  expect((await ask("work-1.a_b")).json).toEqual({ output: "EPHEMERA_TASK_SESSION=work-1.a_b\n" });
  for (const session of [".", "../x", "a b", "-x", "a/b", "a\n", "x".repeat(65)]) {
    for (const query of ["", "?stream=1"]) {
      const refused = await ask(session, query);
      expect([refused.status, refused.text]).toEqual([400, "invalid session"]);
    }
  }
});

test("the goose profile begins a session once, and goes on from it once a task of it succeeded", async () => {
  await using engine = await FakeEngine.open();
  const { task_command } = await engine.engine.parts.profiles.get("goose");
  const bin = engine.directory.join("bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "goose"), '#!/bin/sh\necho "$@"\n[ "$(cat)" != fail ]\n', { mode: 0o755 });
  const environment = { PATH: `${bin}:${process.env["PATH"]}`, HOME: engine.directory.join("home") };
  writeProfile(engine, "own", JSON.stringify({ task_command, environment }));
  const id = await engine.vm({ profile: "own" });
  const ask = async (prompt: string, session?: string) =>
    ((await engine.post(`/vms/${id}/tasks`, { prompt, session })).json as { output: string }).output;
  const begin = "run --name s1 --instructions -\n";
  expect(await ask("go")).toBe("run --no-session --instructions -\n");
  expect(await ask("fail", "s1")).toBe(begin);
  expect(await ask("go", "s1")).toBe(begin);
  expect(await ask("go", "s1")).toBe("run --name s1 --resume --instructions -\n");
  expect(await ask("go", "s2")).toBe("run --name s2 --instructions -\n");
});

test("output that is cut says so, how much there was and where it is, also in a stream and a broadcast", async () => {
  const stdout = { head: Buffer.from("head"), tail: Buffer.from("tail") };
  const cut = { ...stdout, totalBytes: 2_000_000, path: "/run/ignition/runs/7/stdout", isPathWhole: true };
  await using engine = await FakeEngine.open({}, (run, hostPath, signal) => {
    const handle = startHostRun(run, hostPath, signal);
    const isLong = new TextDecoder().decode(run.stdin ?? new Uint8Array()).startsWith("long");
    if (!isLong) return handle;
    return { ...handle, ended: handle.ended.then((end) => ({ ...end, stdout: cut })) };
  });
  const id = await engine.vm();
  const told = { output_truncated: true, output_bytes: 2_000_000, output_path: cut.path };
  const output = expect.stringContaining("1999992 bytes omitted");
  expect(await task(engine, id, "long=1")).toMatchObject({ status: 200, json: { output, ...told } });
  expect(await task(engine, id, "long=1; exit 3")).toMatchObject({
    status: 500,
    json: { output, ...told, error: "exit status 3" },
  });
  const { text } = await task(engine, id, "long=1", "?stream=1");
  expect(JSON.parse(text.trimEnd().split("\n").at(-1)!)).toMatchObject({ type: "result", output, ...told });
  expect((await task(engine, id, "echo short")).json).toEqual({ output: "short\n" });
  const { flock_id } = await flockOf(engine, ["a"]);
  const { json } = await engine.post(`/flocks/${flock_id}/broadcast`, { body: "long=1" });
  expect(json).toMatchObject({ results: { "a-1": { status: "ok", output, ...told } } });
});

test.each([
  ["task_command: [", "is not YAML"],
  ["cpus: 2", "task_command"],
  ["task_command: x\nmemory: 5", "memory"],
  ["task_command: x\nenvironment: {'a b': c}", "environment"],
  ["task_command: x\negress: ../../etc/passwd", "egress"],
  ['task_command: "a\\0b"', "task_command: it must not have a NUL"],
  ['task_command: x\nsystem_prompt: "a\\0b"', "system_prompt: it must not have a NUL"],
  ['task_command: x\nenvironment: {A: "a\\0b"}', "environment.A: it must not have a NUL"],
  [`task_command: x\nenvironment: {A: ${"x".repeat(131_070)}}`, "a variable has 131071 bytes at most"],
])("a profile that says %j makes no VM, and the answer says why", async (yaml, text) => {
  await using engine = await FakeEngine.open();
  writeProfile(engine, "broken", yaml);
  const { status, json } = await engine.post("/vms", { profile: "broken" });
  expect(status).toBe(500);
  expect((json as { error: string }).error).toContain(text);
});

test("every built-in profile can be used", async () => {
  await using engine = await FakeEngine.open();
  for (const name of ["shell", "goose", "claude", "codex", "gemini"]) {
    const profile = await engine.engine.parts.profiles.get(name);
    expect(profile.task_command).not.toBe("");
  }
});
