import { expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { FakeEngine } from "../../support/fake-engine.ts";

interface Forward {
  guest_port: number;
  host_port: number;
}

/** Answers each connection, at its end, with what it got, doubled. */
function doublingServer(): Promise<{ port: number; server: Server }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    socket.on("data", (data) => {
      text += data.toString();
    });
    socket.on("end", () => socket.end(text + text));
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address() as { port: number };
      resolve({ port: address.port, server });
    });
  });
}

/** Sends the text, ends that direction, and resolves with all that comes back; rejects on a reset. */
function ask(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    let isDone = false;
    void Bun.connect({
      hostname: "127.0.0.1",
      port,
      allowHalfOpen: true,
      socket: {
        open: (socket) => {
          socket.write(text);
          socket.shutdown();
        },
        data: (_, bytes) => {
          answer += bytes.toString();
          isDone = true;
        },
        close: () => (isDone ? resolve(answer) : reject(new Error("closed without an answer"))),
        error: (_, error) => reject(error),
      },
    }).catch(reject);
  });
}

async function forwardTo(engine: FakeEngine, id: string, port: number): Promise<Forward> {
  const { status, text, json } = await engine.post(`/vms/${id}/forwards`, { guest_port: port });
  if (status !== 201) throw new Error(`no forward: ${text}`);
  return json as Forward;
}

test("a forwarded port carries connections in both directions, until it is closed", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { port, server } = await doublingServer();
  try {
    const forward = await forwardTo(engine, id, port);
    expect(forward).toEqual({ guest_port: port, host_port: expect.any(Number) });
    expect((await engine.get(`/vms/${id}/forwards`)).json).toEqual([forward]);
    const answers = await Promise.all(["a", "b", "c"].map((text) => ask(forward.host_port, text)));
    expect(answers).toEqual(["aa", "bb", "cc"]);
    const path = `/vms/${id}/forwards/${forward.host_port}`;
    const closed = await engine.request("DELETE", path);
    expect([closed.status, closed.json]).toEqual([200, { status: "closed", host_port: forward.host_port }]);
    await expect(ask(forward.host_port, "x")).rejects.toThrow();
    expect((await engine.get(`/vms/${id}/forwards`)).json).toEqual([]);
    expect((await engine.request("DELETE", path)).json).toEqual({ error: "forward not found" });
  } finally {
    server.close();
  }
});

test("a forwarded port comes back with its VM, and goes with it", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { port, server } = await doublingServer();
  try {
    const forward = await forwardTo(engine, id, port);
    await engine.restart();
    expect((await engine.get(`/vms/${id}/forwards`)).json).toEqual([forward]);
    expect(await ask(forward.host_port, "again")).toBe("againagain");
    await engine.request("POST", `/vms/${id}/stop`);
    await expect(ask(forward.host_port, "x")).rejects.toThrow();
    expect((await engine.get(`/vms/${id}/forwards`)).json).toEqual([]);
    expect((await engine.post(`/vms/${id}/forwards`, { guest_port: port })).status).toBe(502);
  } finally {
    server.close();
  }
});

test("a port that is taken answers 409, one where nobody listens in the guest resets connections", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const { port, server } = await doublingServer();
  const taken = await engine.post(`/vms/${id}/forwards`, { guest_port: 80, host_port: port });
  expect([taken.status, taken.json]).toEqual([409, { error: `host port ${port} cannot be had: EADDRINUSE` }]);
  server.close();
  const dead = await forwardTo(engine, id, port);
  await expect(ask(dead.host_port, "x")).rejects.toThrow();
});

test.each([
  {},
  { guest_port: 0 },
  { guest_port: 65_536 },
  { guest_port: "80" },
  { guest_port: 80, host_port: -1 },
])("forward %j answers 400", async (body) => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  expect((await engine.post(`/vms/${id}/forwards`, body)).status).toBe(400);
  expect((await engine.request("DELETE", `/vms/${id}/forwards/x`)).status).toBe(400);
  expect((await engine.post("/vms/vm-1/forwards", { guest_port: 80 })).status).toBe(404);
});

test("a port that cannot be written down is not forwarded", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const dir = engine.engine.parts.vms.get(id).dir;
  renameSync(dir, `${dir}.away`);
  const { status } = await engine.post(`/vms/${id}/forwards`, { guest_port: 80, host_port: 0 });
  renameSync(`${dir}.away`, dir);
  expect(status).toBe(500);
  expect((await engine.get(`/vms/${id}/forwards`)).json).toEqual([]);
});

test("no more ports than the limit, however many are asked for at once", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const ask = () => engine.post(`/vms/${id}/forwards`, { guest_port: 80 });
  const statuses = (await Promise.all(Array.from({ length: 70 }, ask))).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(64);
  expect(statuses.filter((status) => status === 409)).toHaveLength(6);
});
