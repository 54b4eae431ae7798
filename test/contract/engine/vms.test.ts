import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { VmError } from "../../../src/vm/vm-error.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

test("POST /vms answers 201 with the VM and its token, which no other answer holds", async () => {
  await using engine = await FakeEngine.open();
  const made = await engine.post("/vms", { tenant_id: "acme", egress_policy: "deny_all" });
  expect(made.status).toBe(201);
  const vm = made.json as Record<string, string>;
  expect(vm).toEqual({
    vm_id: expect.stringMatching(/^vm-\d{19}$/),
    guest_ip: "10.0.1.2",
    agent_url: `http://127.0.0.1:3000/vms/${vm["vm_id"]}`,
    tenant_id: "acme",
    egress_policy: "deny_all",
    status: "running",
    created_at: expect.stringMatching(/^\d{4}-/),
    agent_token: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const listed = await engine.get("/vms");
  const { agent_token: token, ...rest } = vm;
  expect(listed.json).toEqual([rest]);
  expect(listed.text).not.toContain(token!);
});

test("POST /vms takes no body, an empty one, null and empty strings", async () => {
  await using engine = await FakeEngine.open();
  expect((await engine.request("POST", "/vms")).status).toBe(201);
  const empty = { headers: { "content-type": "application/json" } };
  expect((await engine.request("POST", "/vms", empty)).status).toBe(201);
  const made = await engine.post("/vms", { profile: "", tenant_id: null, egress_policy: "", flock_id: null });
  expect(made.status).toBe(201);
  expect(made.json).not.toHaveProperty("profile");
  expect(
    new Set(((await engine.get("/vms")).json as { guest_ip: string }[]).map((vm) => vm.guest_ip)).size,
  ).toBe(3);
});

test.each([
  [{ tenant_id: "../x" }, "tenant_id must be at most 64 of"],
  [{ tenant_id: "a..b" }, "tenant_id must be at most 64 of"],
  [{ tenant_id: 5 }, "invalid tenant_id"],
  [{ egress_policy: "open" }, "egress_policy must be empty, deny_all, profile, or allow_all"],
  [{ profile: "nobody" }, "unknown profile 'nobody'"],
  [{ profile: "../shell" }, "profile must be letters"],
  [{ flock_id: "a/b" }, "invalid flock_id"],
  [[], "invalid request"],
])("POST /vms refuses %j with 400", async (body, text) => {
  await using engine = await FakeEngine.open();
  const { status, json } = await engine.post("/vms", body);
  expect(status).toBe(400);
  expect((json as { error: string }).error).toContain(text);
  expect((await engine.get("/vms")).json).toEqual([]);
});

test("POST /vms refuses what is not JSON, is torn, and is too large", async () => {
  await using engine = await FakeEngine.open();
  const send = (body: string, type: string) =>
    engine.request("POST", "/vms", {
      body,
      headers: { "content-type": type, "content-length": String(body.length) },
    });
  expect((await send("profile=shell", "text/plain")).status).toBe(415);
  const torn = await send('{"profile":', "application/json");
  expect([torn.status, torn.json]).toEqual([400, { error: "invalid JSON body" }]);
  const large = await send(JSON.stringify({ profile: "x".repeat(1_048_576) }), "application/json");
  expect([large.status, large.json]).toEqual([413, { error: "request body too large" }]);
});

test("a VM that cannot be made answers 500 with the reason, and leaves nothing", async () => {
  await using engine = await FakeEngine.open();
  engine.machines.failure = new Error("QEMU did not start");
  const { status, json } = await engine.post("/vms");
  expect([status, json]).toEqual([500, { error: "the VM could not be made: QEMU did not start" }]);
  expect((await engine.get("/vms")).json).toEqual([]);
  expect(readdirSync(engine.engine.parts.paths.vms)).toEqual([]);
});

test("POST /vms answers 507 when the disk would be nearly full", async () => {
  await using engine = await FakeEngine.open({ IGN_ENGINE_DISK_FLOOR_MIB: "1073741824" });
  const { status, json } = await engine.post("/vms");
  expect(status).toBe(507);
  expect((json as { error: string }).error).toContain("insufficient disk space");
});

test("DELETE /vms/{id} ends a VM with all its files, once", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm();
  const dir = join(engine.engine.parts.paths.vms, id);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, "state.json")).mode & 0o777).toBe(0o600);
  const { status, json } = await engine.request("DELETE", `/vms/${id}`);
  expect([status, json]).toEqual([200, { status: "stopped", vm_id: id }]);
  expect(existsSync(dir)).toBe(false);
  const again = await engine.request("DELETE", `/vms/${id}`);
  expect([again.status, again.text]).toEqual([404, "VM not found"]);
  expect(again.headers.get("content-type")).toContain("text/plain");
});

test("a VM that is being made is not told of, and cannot be deleted", async () => {
  await using engine = await FakeEngine.open();
  const { promise, resolve } = Promise.withResolvers<void>();
  engine.machines.gate = promise;
  const making = engine.post("/vms");
  while (readdirSync(engine.engine.parts.paths.vms).length === 0) await Bun.sleep(1);
  const [id] = readdirSync(engine.engine.parts.paths.vms);
  expect((await engine.get("/vms")).json).toEqual([]);
  expect((await engine.request("DELETE", `/vms/${id}`)).status).toBe(404);
  resolve();
  expect((await making).status).toBe(201);
});

test("wrong methods answer 405 and name the right ones, unknown paths 404", async () => {
  await using engine = await FakeEngine.open();
  const wrong = await engine.request("PATCH", "/vms");
  expect([wrong.status, wrong.text, wrong.headers.get("allow")]).toEqual([
    405,
    "method not allowed",
    "GET, POST",
  ]);
  expect((await engine.request("POST", "/health")).status).toBe(405);
  expect((await engine.request("GET", "/vms/vm-1")).status).toBe(405);
  const unknown = await engine.get("/vmss");
  expect([unknown.status, unknown.json]).toEqual([404, { error: "not found" }]);
});

test("GET /health counts VMs and says whether tokens are needed", async () => {
  await using engine = await FakeEngine.open();
  await engine.vm();
  expect((await engine.get("/health")).json).toEqual({
    status: "ok",
    vm_count: 1,
    snapshot_count: 0,
    auth_enabled: false,
  });
});

test("every answer has its line in the access log", async () => {
  await using engine = await FakeEngine.open();
  await engine.get("/health?x=secret");
  await engine.request("DELETE", "/vms/vm-1");
  const text = readFileSync(join(engine.engine.parts.paths.audit, "access.jsonl"), "utf8");
  expect(text).not.toContain("secret");
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ method, path, status }) => [method, path, status])).toEqual([
    ["GET", "/health", 200],
    ["DELETE", "/vms/vm-1", 404],
  ]);
  expect(lines[1]).toMatchObject({ client: "", bytes: 12, remote_addr: "" });
});

test("no more VMs at once than IGN_ENGINE_MAX_VMS, whoever asks", async () => {
  await using engine = await FakeEngine.open({ IGN_ENGINE_MAX_VMS: "2" });
  const answers = await Promise.all(Array.from({ length: 4 }, () => engine.post("/vms")));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 503, 503]);
  expect(answers.find(({ status }) => status === 503)?.json).toEqual({
    error: "the engine has 2 VMs, which is its IGN_ENGINE_MAX_VMS; delete one first",
  });
  const [{ vm_id: id }] = (await engine.get("/vms")).json as [{ vm_id: string }];
  expect((await engine.post("/flocks", { task: "t", roles: ["a"] })).status).toBe(503);
  await engine.post(`/vms/${id}/stop`);
  expect((await engine.post("/flocks", { task: "t", roles: ["a", "b"] })).status).toBe(503);
  expect((await engine.get("/flocks")).json).toEqual([]);
  expect((await engine.post("/flocks", { task: "t", roles: ["a"] })).status).toBe(201);
});

test("POST /vms without a directory for sockets says what to set", async () => {
  await using engine = await FakeEngine.open();
  engine.machines.socketDirFor = () => {
    throw new VmError("runtime_dir", "no directory for VM sockets. Set XDG_RUNTIME_DIR");
  };
  const { status, json } = await engine.post("/vms");
  const error = "the VM could not be made: no directory for VM sockets. Set XDG_RUNTIME_DIR";
  expect([status, json]).toEqual([500, { error }]);
  expect((await engine.get("/vms")).json).toEqual([]);
});
