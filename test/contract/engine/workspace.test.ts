import { expect, test } from "bun:test";
import { FakeEngine } from "../../support/fake-engine.ts";
import { startHostRun } from "../../support/host-run.ts";
import { labelled } from "../../support/short-label.ts";

const LIMIT = 4 * 1_048_576;

function put(
  engine: FakeEngine,
  id: string,
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
  query = "",
  signal?: AbortSignal,
) {
  const at = `/vms/${id}/workspace?path=${encodeURIComponent(path)}${query}`;
  return engine.request("PUT", at, { body: content, ...(signal && { signal }) });
}

function get(engine: FakeEngine, id: string, path: string) {
  return engine.get(`/vms/${id}/workspace?path=${encodeURIComponent(path)}`);
}

test("a file goes in and comes out again, byte by byte", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const content = Uint8Array.from({ length: 256 }, (_, index) => index);
  const written = await put(engine, id, " notes/./it's a task.bin ", content);
  expect([written.status, written.json]).toEqual([200, { path: "notes/it's a task.bin", bytes: 256 }]);
  const response = await engine.engine.app.request(`/vms/${id}/workspace?path=notes/it's a task.bin`);
  expect(response.headers.get("content-type")).toBe("application/octet-stream");
  expect(await response.bytes()).toEqual(content);
});

test("a file that is there is replaced only on demand", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await put(engine, id, "a", "one");
  for (const query of ["", "&overwrite=false"]) {
    const again = await put(engine, id, "a", "two", query);
    expect([again.status, again.json]).toEqual([409, { error: "workspace file already exists" }]);
  }
  expect((await put(engine, id, "a", "three", "&overwrite=true")).status).toBe(200);
  expect((await get(engine, id, "a")).text).toBe("three");
  const left = await engine.post(`/vms/${id}/tasks`, { prompt: "ls -A" });
  expect(left.json).toEqual({ output: "a\n" });
});

test("a client that goes while its file is linked leaves nothing", async () => {
  const gone = new AbortController();
  const linking = Promise.withResolvers<void>();
  await using engine = await FakeEngine.open({}, (run, hostPath, signal) => {
    const isLink = new TextDecoder().decode(run.command).startsWith("ln -T");
    const command = isLink ? new TextEncoder().encode("sleep 60") : run.command;
    if (isLink) linking.resolve();
    return startHostRun({ ...run, command }, hostPath, signal);
  });
  const id = await engine.vm();
  const asked = put(engine, id, "a", "one", "", gone.signal);
  await linking.promise;
  gone.abort();
  await asked;
  expect((await engine.post(`/vms/${id}/tasks`, { prompt: "ls -A" })).json).toEqual({ output: "" });
});

test.each(labelled(["", "  ", "/etc/passwd", "a\\b", "a\0b", ".", "a/", "x".repeat(4001)]))(
  "path %s is refused with 400",
  async (_, path) => {
    await using engine = await FakeEngine.open();
    const id = await engine.vm();
    for (const answer of [await put(engine, id, path, "x"), await get(engine, id, path)])
      expect([answer.status, answer.json]).toEqual([
        400,
        { error: "path must be a non-empty relative workspace path" },
      ]);
  },
);

test.each([`a/${"n".repeat(256)}`, `${"\u00fc".repeat(128)}/a`])(
  "path %j has a name no file can have and is refused with 400",
  async (path) => {
    await using engine = await FakeEngine.open();
    const id = await engine.vm();
    for (const answer of [await put(engine, id, path, "x"), await get(engine, id, path)])
      expect([answer.status, answer.json]).toEqual([400, { error: "workspace path is not a file" }]);
  },
);

test.each(["..", "../x", "a/../../x"])("path %j leads out and is refused with 400", async (path) => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  for (const answer of [await put(engine, id, path, "x"), await get(engine, id, path)])
    expect([answer.status, answer.json]).toEqual([400, { error: "path must stay within workspace" }]);
});

test("files of 4 MiB pass in both directions, larger ones in none", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  expect((await put(engine, id, "most", new Uint8Array(LIMIT))).status).toBe(200);
  expect((await get(engine, id, "most")).text).toHaveLength(LIMIT);
  const tooLarge = [413, { error: "workspace file exceeds size limit" }];
  const written = await put(engine, id, "more", new Uint8Array(LIMIT + 1));
  expect([written.status, written.json]).toEqual(tooLarge);
  await engine.machines.of(id).putFile("/workspace/more", new Uint8Array(LIMIT + 1));
  const read = await get(engine, id, "more");
  expect([read.status, read.json]).toEqual(tooLarge);
});

test("what is not there answers 404, a directory 400, a VM that is gone 502", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const missing = await get(engine, id, "nothing");
  expect([missing.status, missing.json]).toEqual([404, { error: "workspace file not found" }]);
  await put(engine, id, "dir/file", "x");
  expect((await get(engine, id, "dir")).json).toEqual({ error: "workspace path is not a file" });
  expect((await put(engine, id, "dir", "x", "&overwrite=true")).status).toBe(400);
  expect((await put(engine, "vm-1", "a", "x")).json).toEqual({ error: "vm not found" });
  expect((await put(engine, id, "a", "x", "&overwrite=maybe")).status).toBe(400);
  engine.machines.of(id).isAnswering = false;
  for (const answer of [await put(engine, id, "b", "x"), await get(engine, id, "b")])
    expect([answer.status, answer.json]).toEqual([
      502,
      { error: "agent unreachable: the connection to the agent ended" },
    ]);
});

test("a workload is a script below workloads/, with a bare environment", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  await put(
    engine,
    id,
    "workloads/check.sh",
    "echo out; echo err >&2; env | cut -d= -f1 | sort | head -2; exit 4",
  );
  const { status, json } = await engine.post(`/vms/${id}/workloads/run`, { script: "workloads/check.sh" });
  expect([status, json]).toEqual([
    200,
    {
      script: "workloads/check.sh",
      exit_code: 4,
      stdout: "out\nHOME\nPATH\n",
      stderr: "err\n",
      duration_ms: expect.any(Number),
      timed_out: false,
    },
  ]);
});

test.each([
  [{ script: "check.sh" }, 400, "script must be a .sh file below workloads/"],
  [{ script: "workloads/../x.sh" }, 400, "script must be a .sh file below workloads/"],
  [{ script: "../workloads/x.sh" }, 400, "path must stay within workspace"],
  [{ script: "workloads/none.sh" }, 404, "workload script not found"],
  [{ script: "workloads/x.sh", timeout_seconds: 1801 }, 400, "timeout_seconds"],
  [{}, 400, "script"],
])("workload %j answers %d", async (body, status, text) => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const answer = await engine.post(`/vms/${id}/workloads/run`, body);
  expect(answer.status).toBe(status);
  expect((answer.json as { error: string }).error).toContain(text);
});
