import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeEngine } from "../../support/fake-engine.ts";
import { streamPair } from "../../support/proxied-guest.ts";
import { TcpServer } from "../../support/tcp-server.ts";

function writeRules(engine: FakeEngine, text: string, dir = engine.env["IGN_ENGINE_PROFILES"]!): void {
  mkdirSync(join(dir, "shell"), { recursive: true });
  writeFileSync(join(dir, "shell", "egress.json"), text);
}

const hasProxy = (engine: FakeEngine, id: string) => engine.machines.of(id).proxy !== null;

test("a VM has a proxy only when its policy lets something through", async () => {
  await using engine = await FakeEngine.open();
  const without = [await engine.vm(), await engine.vm({ egress_policy: "profile" })];
  writeRules(engine, '{"allow_sni": ["example.com"]}');
  const denied = await engine.vm({ egress_policy: "deny_all" });
  const allowed = [
    await engine.vm(),
    await engine.vm({ egress_policy: "profile" }),
    await engine.vm({ egress_policy: "allow_all" }),
  ];
  expect([...without, denied].map((id) => hasProxy(engine, id))).toEqual([false, false, false]);
  expect(allowed.map((id) => hasProxy(engine, id))).toEqual([true, true, true]);
  await engine.restart();
  expect(allowed.map((id) => hasProxy(engine, id))).toEqual([true, true, true]);
  expect(hasProxy(engine, denied)).toBe(false);
});

test("a VM with a door has a proxy even when nothing else is let through", async () => {
  await using engine = await FakeEngine.open();
  engine.engine.parts.egress.doorOf = (vm) => (vm.record.flock_id ? async () => null : null);
  const member = await engine.vm({ egress_policy: "deny_all", flock_id: "flock-1", agent_id: "a-1" });
  const other = await engine.vm({ egress_policy: "deny_all" });
  expect([hasProxy(engine, member), hasProxy(engine, other)]).toEqual([true, false]);
});

test("rules that cannot be read make no VM, and leave adopted ones without a way out but for their wall", async () => {
  await using engine = await FakeEngine.open();
  writeRules(engine, '{"allow_sni": ["example.com"]}');
  const id = await engine.vm();
  const { agents } = (await engine.post("/flocks", { task: "t", roles: ["r"] })).json as {
    agents: { vm_id: string }[];
  };
  const member = agents[0]!.vm_id;
  writeRules(engine, '{"allow_hosts": []}');
  const { status, json } = await engine.post("/vms");
  expect(status).toBe(500);
  expect((json as { error: string }).error).toContain("allow_hosts is no longer a key");
  expect(readdirSync(engine.engine.parts.paths.vms).sort()).toEqual([id, member]);
  await engine.restart();
  expect((await engine.get("/vms")).json).toMatchObject([
    { vm_id: id, status: "running" },
    { vm_id: member, status: "running" },
  ]);
  expect([id, member].map((vmId) => hasProxy(engine, vmId))).toEqual([false, true]);
  expect(engine.logged.some(({ message }) => message === "an adopted VM has no way out")).toBe(true);
});

test("a VM whose profile was removed goes on under the next engine, without a way out", async () => {
  await using engine = await FakeEngine.open();
  const dir = join(engine.env["IGN_ENGINE_PROFILES"]!, "own");
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "profile.yaml"), "task_command: sh -s\n");
  writeFileSync(join(dir, "egress.json"), '{"allow_sni": ["example.com"]}');
  const id = await engine.vm({ profile: "own" });
  rmSync(dir, { recursive: true });
  await engine.restart();
  expect((await engine.get("/vms")).json).toMatchObject([{ vm_id: id, status: "running" }]);
  expect(hasProxy(engine, id)).toBe(false);
  const { status, json } = await engine.post(`/vms/${id}/tasks`, { prompt: "true" });
  expect([status, json]).toEqual([400, { error: "unknown profile 'own'" }]);
});

test("rules are in the directory of egress profiles where there is one", async () => {
  await using engine = await FakeEngine.open();
  const dir = engine.directory.join("rules");
  writeRules(engine, '{"allow_sni": ["example.com"]}', dir);
  engine.env["EPHEMERA_EGRESS_PROFILE_DIR"] = dir;
  await engine.restart();
  expect(hasProxy(engine, await engine.vm())).toBe(true);
});

test("what guests reach is counted while it goes on, and by verdict and reason when it is over", async () => {
  await using engine = await FakeEngine.open();
  writeRules(engine, '{"allow_cidrs": ["127.0.0.1/32"]}');
  const id = await engine.vm();
  using server = await TcpServer.start((socket) => socket.pipe(socket));
  const stats = async () => (await engine.get(`/vms/${id}/stats`)).json;
  const metrics = async () => (await engine.get("/metrics")).text;
  const proxy = engine.machines.of(id).proxy!;
  const ask = async (target: string) => {
    const [guest, host] = streamPair();
    const served = proxy({ ...host, abort: () => undefined });
    const writer = guest.writable.getWriter();
    await writer.write(Buffer.from(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`));
    const { value } = await guest.readable.getReader().read();
    return { writer, served, answer: Buffer.from(value ?? []).toString() };
  };
  const open = await ask(`127.0.0.1:${server.port}`);
  expect(open.answer).toStartWith("HTTP/1.1 200 ");
  expect(await stats()).toMatchObject({ network_rx_bytes: open.answer.length });
  expect(await metrics()).toContain("ephemera_egress_connections 1");
  const refused = await ask("127.0.0.2:80");
  expect(refused.answer).toStartWith("HTTP/1.1 403 ");
  await Promise.all([open.writer.close(), refused.writer.close()]);
  await Promise.all([open.served, refused.served]);
  const text = await metrics();
  expect(text).toContain('ephemera_egress_total{verdict="allowed",reason="cidr"} 1');
  expect(text).toContain('ephemera_egress_total{verdict="refused",reason="address_not_listed"} 1');
  expect(text).toContain("ephemera_egress_connections 0");
});
