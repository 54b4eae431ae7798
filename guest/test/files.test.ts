import { expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { AgentProcess, type, windowBytes } from "./agent-process.ts";
import { get, outcome, parse, put, run, uint32 } from "./agent-requests.ts";

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, value) => value));

test("files of no, every and 32 Mi bytes arrive and come back", async () => {
  await using agent = await AgentProcess.open();
  const large = Buffer.alloc(32 * 1_048_576);
  for (let at = 0; at < large.length; at += 4) large.writeUInt32LE(Math.imul(at, 2_654_435_761) >>> 0, at);
  for (const bytes of [Buffer.alloc(0), everyByte, large]) {
    const path = `${agent.directory}/file`;
    expect(await put(agent, path, bytes)).toEqual({ ok: true, answer: { bytes: bytes.length } });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    const back = await get(agent, path);
    expect(back.answer).toEqual({ bytes: bytes.length, file_bytes: bytes.length });
    expect(back.bytes.equals(bytes)).toBe(true);
  }
});

test("missing parents are created, and the mode is the given, the old or 0644", async () => {
  await using agent = await AgentProcess.open();
  const path = `${agent.directory}/a/b c/ü/file`;
  const mode = () => statSync(path).mode & 0o7777;
  await put(agent, path, everyByte);
  expect(mode()).toBe(0o644);
  expect(statSync(`${agent.directory}/a`).mode & 0o7777).toBe(0o755);
  await put(agent, path, everyByte, 0o750);
  expect(mode()).toBe(0o750);
  chmodSync(path, 0o601);
  await put(agent, path, everyByte);
  expect(mode()).toBe(0o601);
});

test("a symbolic link stays, what it names is replaced", async () => {
  await using agent = await AgentProcess.open();
  writeFileSync(`${agent.directory}/real`, "old");
  symlinkSync("real", `${agent.directory}/link`);
  await put(agent, `${agent.directory}/link`, Buffer.from("new"));
  expect(readFileSync(`${agent.directory}/real`, "utf8")).toBe("new");
});

test("paths that cannot be written say why and leave nothing behind", async () => {
  await using agent = await AgentProcess.open();
  const at = (name: string) => `${agent.directory}/${name}`;
  mkdirSync(at("directory"));
  writeFileSync(at("file"), "kept");
  const refusals = [
    [at("directory"), { code: "is_directory", errno: "EISDIR" }],
    [at("new/"), { code: "is_directory", errno: "EISDIR" }],
    [at("file/below"), { code: "bad_path", errno: "ENOTDIR" }],
    [at("n".repeat(300)), { code: "bad_path", errno: "ENAMETOOLONG" }],
    ["/dev/null", { code: "bad_path", errno: "EINVAL" }],
    ["", { code: "bad_path", errno: null }],
  ] as const;
  for (const [path, answer] of refusals) {
    const { ok, answer: got } = await put(agent, path, everyByte);
    expect({ path, ok, ...got }).toMatchObject({ path, ok: false, ...answer });
  }
  expect(readdirSync(agent.directory).sort()).toEqual(["directory", "file"]);
  expect(readFileSync(at("file"), "utf8")).toBe("kept");
});

test("a file above 4 GiB is refused", async () => {
  await using agent = await AgentProcess.open();
  const stream = agent.newStream();
  agent.send(type.put, stream, { path: `${agent.directory}/file`, bytes: 2 ** 32 + 1, mode: null });
  expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
});

test("CANCEL removes what had arrived", async () => {
  await using agent = await AgentProcess.open();
  const stream = agent.newStream();
  agent.send(type.put, stream, { path: `${agent.directory}/file`, bytes: 1000, mode: null });
  agent.send(type.data, stream, Buffer.alloc(500));
  agent.send(type.cancel, stream, Buffer.alloc(0));
  expect(parse(await agent.next(stream))).toMatchObject({ code: "cancelled" });
  expect(readdirSync(agent.directory)).toEqual([]);
});

test("more DATA than announced or granted is refused", async () => {
  await using agent = await AgentProcess.open();
  const announced = agent.newStream();
  agent.send(type.put, announced, { path: `${agent.directory}/file`, bytes: 10, mode: null });
  agent.send(type.data, announced, Buffer.alloc(11));
  expect(parse(await agent.next(announced))).toMatchObject({ code: "bad_request" });
  const granted = agent.newStream();
  agent.send(type.put, granted, { path: `${agent.directory}/file`, bytes: 100 * windowBytes, mode: null });
  // Too little for the agent to grant more, then more than what is left.
  agent.send(type.data, granted, Buffer.alloc(windowBytes / 8));
  agent.send(type.data, granted, Buffer.alloc(windowBytes - windowBytes / 8 + 1));
  expect(parse(await agent.next(granted))).toMatchObject({ code: "credit_exceeded" });
  expect(readdirSync(agent.directory)).toEqual([]);
});

test("GET reads ranges", async () => {
  await using agent = await AgentProcess.open();
  const path = `${agent.directory}/file`;
  writeFileSync(path, everyByte);
  const cases = [
    [0, 256, 0, 256],
    [10, 5, 10, 15],
    [250, 100, 250, 256],
    [256, null, 256, 256],
    [1000, 1, 256, 256],
    [100, null, 100, 256],
    [0, 0, 0, 0],
  ] as const;
  for (const [offset, bytes, from, to] of cases) {
    const { ok, answer, bytes: got } = await get(agent, path, offset, bytes);
    expect({ ok, answer }).toEqual({ ok: true, answer: { bytes: to - from, file_bytes: 256 } });
    expect(got.equals(everyByte.subarray(from, to))).toBe(true);
  }
});

test("GET of what is not a file says why, and of /proc works", async () => {
  await using agent = await AgentProcess.open();
  await run(agent, `mkfifo ${agent.directory}/fifo`);
  expect((await get(agent, "/not/there")).answer).toMatchObject({ code: "not_found", errno: "ENOENT" });
  expect((await get(agent, agent.directory)).answer).toMatchObject({ code: "is_directory", errno: "EISDIR" });
  expect((await get(agent, `${agent.directory}/fifo`)).answer).toMatchObject({ code: "bad_path" });
  expect((await get(agent, "/dev/zero")).answer).toMatchObject({ code: "bad_path" });
  const version = await get(agent, "/proc/version");
  expect(version.bytes.toString()).toStartWith("Linux version");
  expect(version.answer["file_bytes"]).toBe(version.bytes.length);
});

test("GET sends no more than its credit, goes on when it is granted, and can be cancelled", async () => {
  await using agent = await AgentProcess.open();
  const path = `${agent.directory}/file`;
  writeFileSync(path, Buffer.alloc(4 * windowBytes, "x"));
  const stream = agent.newStream();
  agent.send(type.get, stream, { path, offset: null, bytes: null });
  const receive = async (bytes: number) => {
    for (let left = bytes; left > 0; ) left -= (await agent.next(stream)).payload.length;
  };
  await receive(windowBytes);
  expect((await run(agent, "echo the others go on")).stdout.toString()).toBe("the others go on\n");
  expect(agent.pendingFrames(stream)).toEqual([]);
  agent.send(type.credit, stream, uint32(1000));
  await receive(1000);
  agent.send(type.cancel, stream, Buffer.alloc(0));
  expect(outcome(await agent.next(stream))).toMatchObject({ ok: false, answer: { code: "cancelled" } });
});

test("CLONED refuses an identity that is not one", async () => {
  await using agent = await AgentProcess.open();
  const good = {
    entropy: "a".repeat(64),
    wall_clock_us: 1_700_000_000_000_000,
    hostname: "clone-1",
    machine_id: "b".repeat(32),
  };
  for (const bad of [
    { entropy: "a".repeat(63) },
    { entropy: "g".repeat(64) },
    { wall_clock_us: null },
    { hostname: "UPPER" },
    { hostname: "x".repeat(64) },
    { hostname: "" },
    { machine_id: "../../etc" },
  ]) {
    agent.send(type.cloned, 0, { ...good, ...bad });
    expect(parse(await agent.next(0))).toMatchObject({ code: "bad_request" });
  }
});
