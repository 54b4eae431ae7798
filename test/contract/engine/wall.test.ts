import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { answerGuest } from "../../../src/engine/flocks/guest-door.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf } from "../../support/fake-flocks.ts";

interface Message {
  seq: number;
  timestamp: string;
  agent_id: string;
  body: string;
}

test("POST post answers with the message, and history has all of them in order", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a", "b"]);
  const first = await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "one\ntwo" });
  expect(first.status).toBe(200);
  expect(first.json).toEqual({
    seq: 1,
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    agent_id: "a-1",
    body: "one\ntwo",
  });
  const second = await engine.post(`/flocks/${id}/post`, { agent_id: "b-1", body: "three" });
  expect(second.json).toMatchObject({ seq: 2 });
  expect((await engine.get(`/flocks/${id}/wall/history`)).json).toEqual([first.json, second.json]);
});

test.each([
  {},
  { agent_id: "a-1" },
  { body: "x" },
  { agent_id: "a-1", body: "" },
  { agent_id: " ", body: "x" },
])("POST post refuses %j with 400", async (body) => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const { status, json } = await engine.post(`/flocks/${id}/post`, body);
  expect([status, json]).toEqual([400, { error: "agent_id and body required" }]);
});

test("POST post refuses what is no text with 400, and no JSON with 415", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  for (const body of [{ agent_id: 1, body: "x" }, { agent_id: "a-1", body: ["x"] }, []])
    expect((await engine.post(`/flocks/${id}/post`, body)).status).toBe(400);
  const headers = { "content-type": "text/plain", "content-length": "1" };
  expect((await engine.request("POST", `/flocks/${id}/post`, { body: "x", headers })).status).toBe(415);
});

test("POST post refuses the engine's own name and whoever is no member with 403", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a", "control-plane"]);
  for (const agent_id of ["control-plane", "a-2", "toString", "__proto__", "A-1"]) {
    const { status, json } = await engine.post(`/flocks/${id}/post`, { agent_id, body: "x" });
    expect([status, json]).toEqual([403, { error: `agent ${agent_id} is not a member of this flock` }]);
  }
  await engine.request("DELETE", `/flocks/${id}/agents/a-1`);
  expect((await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "x" })).status).toBe(403);
  expect((await engine.get(`/flocks/${id}/wall/history`)).json).toEqual([]);
});

test("a post of 1 MiB is taken and a larger one refused with 413", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const around = JSON.stringify({ agent_id: "a-1", body: "" }).length;
  const post = (bytes: number) =>
    engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body: "x".repeat(bytes - around) });
  expect((await post(1_048_576)).status).toBe(200);
  const { status, json } = await post(1_048_577);
  expect([status, json]).toEqual([413, { error: "request body too large" }]);
});

test("history is filtered by author, text and time", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a", "b"]);
  for (const [agent_id, body] of [
    ["a-1", "plan"],
    ["b-1", "plan b"],
    ["a-1", "done"],
  ])
    await engine.post(`/flocks/${id}/post`, { agent_id, body });
  const seqs = async (query: string) => {
    const { status, json } = await engine.get(`/flocks/${id}/wall/history?${query}`);
    expect(status).toBe(200);
    return (json as Message[]).map(({ seq }) => seq);
  };
  expect(await seqs("agent_id=a-1")).toEqual([1, 3]);
  expect(await seqs("contains=plan")).toEqual([1, 2]);
  expect(await seqs("contains=plan&agent_id=b-1")).toEqual([2]);
  expect(await seqs("since=2000-01-01T00:00:00Z&until=2999-01-01T00:00:00%2B01:00")).toEqual([1, 2, 3]);
  expect(await seqs("since=2999-01-01T00:00:00Z")).toEqual([]);
  expect(await seqs("until=2000-01-01T00:00:00Z")).toEqual([]);
  expect(await seqs("agent_id=&contains=&since=&until=")).toEqual([1, 2, 3]);
  for (const name of ["since", "until"]) {
    for (const value of ["yesterday", "2026-01-01", "1700000000"]) {
      const { status, json } = await engine.get(`/flocks/${id}/wall/history?${name}=${value}`);
      expect([status, json]).toEqual([400, { error: `invalid ${name}: must be RFC3339` }]);
    }
  }
});

test("a wall that is full is set aside within the limits of the environment, and its numbers go on", async () => {
  await using engine = await FakeEngine.open({ EPHEMERA_TOWNWALL_MAX_MIB: "1", EPHEMERA_TOWNWALL_KEEP: "1" });
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const body = "x".repeat(400_000);
  for (let at = 1; at <= 7; at++)
    expect((await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body })).json).toMatchObject({
      seq: at,
    });
  const history = (await engine.get(`/flocks/${id}/wall/history`)).json as Message[];
  expect(history.map(({ seq }) => seq)).toEqual([5, 6, 7]);
  await engine.restart();
  expect((await engine.post(`/flocks/${id}/post`, { agent_id: "a-1", body })).json).toMatchObject({ seq: 8 });
});

test("the flock's own token opens its wall and nothing else", async () => {
  await using engine = await FakeEngine.open({ ANVIL_API_TOKEN: "control" });
  const as = (token: string, method: string, path: string, body?: object) => {
    const text = JSON.stringify(body ?? {});
    return engine.request(method, path, {
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { "content-type": "application/json", "content-length": `${text.length}` }),
      },
      ...(body && { body: text }),
    });
  };
  const make = async () => {
    const { json } = await as("control", "POST", "/flocks", { task: "t", roles: ["a"] });
    return (json as { flock_id: string }).flock_id;
  };
  const [id, other] = [await make(), await make()];
  const token = () => readFileSync(join(engine.engine.parts.paths.flocks, id, "guest-token"), "utf8").trim();
  expect(token()).toMatch(/^[0-9a-f]{64}$/);
  const post = { agent_id: "a-1", body: "from a guest" };
  for (let round = 0; round < 2; round++) {
    expect((await as(token(), "POST", `/flocks/${id}/post`, post)).status).toBe(200);
    expect((await as(token(), "GET", `/flocks/${id}/wall/history`)).status).toBe(200);
    const closed: [string, string, object?][] = [
      ["GET", `/flocks/${id}`],
      ["DELETE", `/flocks/${id}`],
      ["POST", `/flocks/${id}/broadcast`, { body: "x" }],
      ["GET", `/flocks/${id}/post`],
      ["GET", `/flocks/${other}/wall/history`],
      ["POST", `/flocks/${other}/post`, post],
      ["GET", "/flocks"],
      ["GET", "/vms"],
      ["GET", "/flocks/flock-1/wall"],
    ];
    for (const [method, path, body] of closed)
      expect([path, (await as(token(), method, path, body)).status]).toEqual([path, 401]);
    const before = token();
    await engine.restart();
    expect(token()).toBe(before);
  }
  const stale = token();
  await as("control", "DELETE", `/flocks/${id}`);
  expect((await as(stale, "GET", `/flocks/${id}/wall/history`)).status).toBe(401);
});

test("a guest posts under its own name, whatever it says", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id, agents } = await flockOf(engine, ["a", "b"]);
  const { vms, flocks } = engine.engine.parts;
  const ask = async (vmId: string, body: string, method = "POST", path = "/townwall/post") => {
    const request = new Request(`http://ignition.internal${path}`, {
      method,
      ...(method === "POST" && { body }),
    });
    const answer = await answerGuest(flocks, vms.get(vmId), request);
    return answer && { status: answer.status, text: await answer.text() };
  };
  const [a, b] = agents.map(({ vm_id }) => vm_id) as [string, string];
  const posted = await ask(a, JSON.stringify({ body: "hello", agent_id: "b-1" }));
  expect(posted?.status).toBe(200);
  expect(JSON.parse(posted!.text)).toMatchObject({ seq: 1, agent_id: "a-1", body: "hello" });
  for (const body of ["", "{", "[]", "{}", '{"body":" "}', '{"body":5}'])
    expect(await ask(a, body)).toEqual({ status: 400, text: '{"error":"body required"}' });
  expect(await ask(a, "", "GET")).toEqual({ status: 405, text: "method not allowed" });
  expect(await ask(a, "{}", "POST", "/vms")).toBeNull();
  const alone = await engine.vm();
  expect(await ask(alone, '{"body":"x"}')).toEqual({
    status: 404,
    text: '{"error":"this VM belongs to no flock"}',
  });
  const stranger = await engine.vm({ flock_id: "routed-flock-1", agent_id: "a-1" });
  expect(await ask(stranger, '{"body":"x"}')).toEqual({ status: 404, text: '{"error":"flock not found"}' });
  // A VM that is a member no more, but not yet gone.
  const old = vms.get(b);
  await engine.post(`/flocks/${id}/agents/b-1/restart`);
  const late = new Request("http://ignition.internal/townwall/post", {
    method: "POST",
    body: '{"body":"x"}',
  });
  expect((await answerGuest(flocks, old, late))?.status).toBe(403);
  expect((await engine.get(`/flocks/${id}/wall/history`)).json).toHaveLength(1);
});

test("GET history of all walls together is two at a time, and others wait", async () => {
  await using engine = await FakeEngine.open();
  const { flock_id: id } = await flockOf(engine, ["a"]);
  const { wall } = engine.engine.parts.flocks.get(id);
  const history = wall.history.bind(wall);
  const gate = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  wall.history = async (...of) => {
    most = Math.max(most, ++running);
    await gate.promise;
    running -= 1;
    return await history(...of);
  };
  const asked = Array.from({ length: 5 }, () => engine.get(`/flocks/${id}/wall/history`));
  await eventually("two are under way", () => running === 2);
  gate.resolve();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(most).toBe(2);
});
