import { expect, test } from "bun:test";
import type { Tunnel } from "../../../src/guest/tunnel.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import type { NewFlock } from "../../support/fake-flocks.ts";
import { streamPair } from "../../support/proxied-guest.ts";

/** What the guest of a VM gets from its proxy, until the proxy ends the connection. */
async function ask(engine: FakeEngine, vmId: string, request: string): Promise<string> {
  const [guest, host] = streamPair();
  const answer = new Response(guest.readable).text();
  const served = engine.machines.of(vmId).proxy!(host as Tunnel);
  const writer = guest.writable.getWriter();
  await writer.write(Buffer.from(request));
  await writer.close().catch(() => undefined);
  await served;
  return await answer;
}

function post(host: string, body: string): string {
  return (
    `POST http://${host}/townwall/post HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  );
}

test("a member of a flock posts on its wall through the proxy, under deny_all too, and nothing else opens", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/flocks", { task: "t", roles: ["a", "b"], egress_policy: "deny_all" });
  const { flock_id: id, agents } = made.json as NewFlock;
  const vmId = agents[0]!.vm_id;
  const body = JSON.stringify({ body: "from inside", agent_id: "b-1" });
  for (let round = 0; round < 2; round++) {
    expect(await ask(engine, vmId, post("ignition.internal", body))).toStartWith("HTTP/1.1 200 ");
    expect(await ask(engine, vmId, post("93.184.216.34", body))).toStartWith("HTTP/1.1 403 ");
    await engine.restart();
  }
  const get =
    "GET http://ignition.internal/vms HTTP/1.1\r\nHost: ignition.internal\r\nConnection: close\r\n\r\n";
  expect(await ask(engine, vmId, get)).toStartWith("HTTP/1.1 404 ");
  const history = (await engine.get(`/flocks/${id}/wall/history`)).json as {
    agent_id: string;
    body: string;
  }[];
  expect(history.map(({ agent_id, body }) => [agent_id, body])).toEqual([
    ["a-1", "from inside"],
    ["a-1", "from inside"],
  ]);
});

test("a VM that is in no flock finds no wall", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm({ egress_policy: "allow_all" });
  expect(await ask(engine, id, post("ignition.internal", '{"body":"x"}'))).toStartWith("HTTP/1.1 404 ");
});
