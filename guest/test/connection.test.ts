import { expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { AgentProcess, encodeFrame, type } from "./agent-process.ts";
import { outcome, parse, run, startRun } from "./agent-requests.ts";

test("HELLO is answered with the nonce, the build and the kernel", async () => {
  await using agent = await AgentProcess.start();
  expect(await agent.connect()).toBe("OK 1");
  const nonce = "f".repeat(32);
  agent.send(type.hello, 0, { protocol: 99, nonce });
  const { ok, answer } = outcome(await agent.next(0));
  expect(ok).toBe(true);
  expect(answer).toMatchObject({ protocol: 1, nonce, build: "0123456789abcdef" });
  expect(answer["kernel"]).toMatch(/^\d+\.\d+/);
});

test("PING is answered with the monotonic clock", async () => {
  await using agent = await AgentProcess.open();
  agent.send(type.ping, 0);
  const first = parse(await agent.next(0))["monotonic_us"] as number;
  agent.send(type.ping, 0);
  expect(parse(await agent.next(0))["monotonic_us"] as number).toBeGreaterThanOrEqual(first);
});

test("unknown types, bad requests and streams in use are errors of their stream", async () => {
  await using agent = await AgentProcess.open();
  agent.send(0x77, 5);
  expect(parse(await agent.next(5))).toMatchObject({ code: "unknown_type", errno: null });
  for (const payload of ["", "[]", "{", `{"path":"x"}`, `{"path":3,"bytes":1}`]) {
    const stream = agent.newStream();
    agent.send(type.put, stream, Buffer.from(payload));
    expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
  }
  const stream = startRun(agent, "read line", { stdin: "" });
  agent.send(type.get, stream, { path: "/etc/passwd", offset: null, bytes: null });
  expect(parse(await agent.next(stream))).toMatchObject({ code: "bad_request" });
  agent.send(type.kill, stream, { signal: 9 });
  expect((await agent.next(stream)).type).toBe(type.exit);
});

test("an impossible length ends the connection, and CONNECT begins a new one", async () => {
  await using agent = await AgentProcess.open();
  agent.sendRaw(Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
  expect(parse(await agent.next(0))).toMatchObject({ code: "frame_invalid" });
  agent.send(type.ping, 0);
  expect(await agent.connect()).toBe("OK 2");
  expect((await run(agent, "echo again")).stdout.toString()).toBe("again\n");
});

test("frames before HELLO are refused", async () => {
  await using agent = await AgentProcess.open();
  agent.sendRaw(Buffer.concat([Buffer.from("CONNECT 7000\n"), encodeFrame(type.ping, 0)]));
  // The answer to CONNECT is read as the start of a frame here, so only the text can be looked for.
  const seen = await new Promise<string>((resolve) => {
    const receive = agent.receive.bind(agent);
    agent.receive = (bytes) => {
      receive(bytes);
      resolve(Buffer.from(bytes).toString("latin1"));
    };
  });
  expect(seen).toStartWith("OK 2\n");
  expect(seen).toContain(`"no_hello"`);
});

test("a CONNECT inside a cut-off frame is a new connection once the sender is silent", async () => {
  await using agent = await AgentProcess.open();
  const stream = agent.newStream();
  agent.send(type.put, stream, { path: `${agent.directory}/cut`, bytes: 1000, mode: null });
  agent.sendRaw(encodeFrame(type.data, stream, Buffer.alloc(900)).subarray(0, 400));
  expect(await agent.connect()).toBe("OK 2");
  expect((await run(agent, `ls -A ${agent.directory}`)).stdout.toString()).not.toContain("cut");
  expect((await run(agent, `ls -A ${agent.directory}`)).stdout.toString()).not.toContain("ignition-put");
});

test("a new connection ends the runs of the old one", async () => {
  await using agent = await AgentProcess.open();
  const marker = `${agent.directory}/pid`;
  startRun(agent, `echo $$ >${marker}; exec sleep 1000`);
  while (!(await Bun.file(marker).exists()) || (await Bun.file(marker).text()) === "") await Bun.sleep(5);
  const pid = (await Bun.file(marker).text()).trim();
  await agent.connect();
  const gone = await run(
    agent,
    `for i in $(seq 200); do [ -e /proc/${pid} ] || exit 0; sleep 0.02; done; exit 1`,
  );
  expect(gone.end).toMatchObject({ exit_code: 0 });
});

test("PROBE starts a program and sees its end, again and again, and leaves nothing behind", async () => {
  await using agent = await AgentProcess.open();
  for (let i = 0; i < 5; i++) {
    const stream = agent.newStream();
    agent.send(type.probe, stream);
    expect(outcome(await agent.next(stream))).toEqual({ ok: true, answer: {} });
  }
  const { stdout } = await run(agent, `pgrep -P ${agent.pid} | wc -l`);
  expect(stdout.toString().trim()).toBe("1");
});

test("PROBE says why no program could be started", async () => {
  await using agent = await AgentProcess.open();
  const probe = async () => {
    const stream = agent.newStream();
    agent.send(type.probe, stream);
    return outcome(await agent.next(stream));
  };
  const directory = `/proc/${agent.pid}/fd`;
  const program = readdirSync(directory).find((fd) => readlinkSync(`${directory}/${fd}`).includes("probe"));
  // What is open for writing cannot be executed.
  const fd = openSync(`${directory}/${program}`, "r+");
  expect(await probe()).toMatchObject({ ok: false, answer: { code: "probe_failed", errno: "ETXTBSY" } });
  closeSync(fd);
  expect(await probe()).toMatchObject({ ok: true });
});
