import { expect, test } from "bun:test";
import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeEngine } from "../../support/fake-engine.ts";

interface Records {
  records: Record<string, unknown>[];
}

const recordsOf = async (engine: FakeEngine, query = "") =>
  ((await engine.get(`/audit/runtime${query}`)).json as Records).records;

test("what is done is recorded with tenant, VM and result, and without secrets", async () => {
  await using engine = await FakeEngine.open();
  const id = await engine.vm({ tenant_id: "acme", control_plane_token: "s3cret" });
  await engine.post(`/vms/${id}/tasks`, { prompt: "echo hidden words" });
  await engine.post(`/vms/${id}/tasks`, { prompt: "echo hidden words >&2; exit 1" });
  await engine.get(`/vms/${id}/workspace?path=none`);
  await engine.post("/vms", { tenant_id: "other", profile: "nobody" });
  await engine.request("DELETE", `/vms/${id}`);
  const base = { timestamp: expect.stringMatching(/Z$/), tenant_id: "acme", vm_id: id };
  expect(await recordsOf(engine)).toEqual([
    { ...base, daemon_operation: "POST /vms", result_code: "success" },
    { ...base, daemon_operation: "POST /vms/{vm_id}/tasks", result_code: "success" },
    {
      ...base,
      daemon_operation: "POST /vms/{vm_id}/tasks",
      result_code: "error",
      error: "the task failed",
    },
    {
      ...base,
      daemon_operation: "GET /vms/{vm_id}/workspace",
      result_code: "error",
      error: "workspace file not found",
    },
    {
      timestamp: expect.any(String),
      tenant_id: "other",
      daemon_operation: "POST /vms",
      result_code: "error",
      error: "unknown profile 'nobody'",
    },
    { ...base, daemon_operation: "DELETE /vms/{vm_id}", result_code: "success" },
  ]);
  const path = join(engine.engine.parts.paths.audit, "runtime-audit.jsonl");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8")).not.toMatch(/s3cret|hidden|agent_token/);
});

const PRUNE = "POST /audit/runtime/prune";

test("records can be read by tenant and number, and pruned by number, age and quota", async () => {
  await using engine = await FakeEngine.open();
  const path = join(engine.engine.parts.paths.audit, "runtime-audit.jsonl");
  const line = (timestamp: string, tenant_id: string, n: number) =>
    appendFileSync(path, `${JSON.stringify({ timestamp, tenant_id, daemon_operation: `op ${n}` })}\n`);
  line("2020-01-01T00:00:00Z", "a", 1);
  for (const n of [2, 3, 4]) line(new Date().toISOString(), "a", n);
  for (const n of [5, 6]) line(new Date().toISOString(), "b", n);
  const numbers = (records: Record<string, unknown>[]) => records.map((record) => record["daemon_operation"]);
  expect(numbers(await recordsOf(engine, "?tenant_id=a&limit=2"))).toEqual(["op 3", "op 4"]);
  expect(numbers(await recordsOf(engine, "?limit=1"))).toEqual(["op 6"]);
  const prune = async (policy: object) =>
    numbers(((await engine.post("/audit/runtime/prune", policy)).json as Records).records);
  expect(await prune({ max_age_seconds: 3600 })).toEqual(["op 2", "op 3", "op 4", "op 5", "op 6"]);
  expect(await prune({ keep_last: 5 })).toEqual(["op 3", "op 4", "op 5", "op 6", PRUNE]);
  await engine.send("PUT", "/tenants/a", { quota: { retained_audit_records: 1 } });
  expect(await prune({})).toEqual(["op 5", "op 6", PRUNE, PRUNE, "PUT /tenants/{tenant_id}"]);
  expect(numbers(await recordsOf(engine))).toEqual([
    "op 5",
    "op 6",
    PRUNE,
    PRUNE,
    "PUT /tenants/{tenant_id}",
    PRUNE,
  ]);
});

test("of many records the newest 1000 are answered, and so are those that are left by a prune", async () => {
  await using engine = await FakeEngine.open();
  const path = join(engine.engine.parts.paths.audit, "runtime-audit.jsonl");
  const lines = Array.from({ length: 3000 }, (_, n) => `{"daemon_operation":"op ${n}"}\n`);
  writeFileSync(path, lines.join(""));
  const newest = await recordsOf(engine);
  expect([newest.length, newest[0], newest[999]]).toEqual([
    1000,
    { daemon_operation: "op 2000" },
    { daemon_operation: "op 2999" },
  ]);
  expect(await recordsOf(engine, "?limit=2500")).toHaveLength(2500);
  const pruned = await engine.post("/audit/runtime/prune", { keep_last: 2000 });
  expect((pruned.json as Records).records).toEqual(newest);
  expect(await recordsOf(engine, "?limit=100000")).toHaveLength(2001);
});

test("a tenant's use tells how many records of it are kept, also after a prune and a restart", async () => {
  await using engine = await FakeEngine.open();
  await engine.send("PUT", "/tenants/acme", { quota: { active_vms: 9 } });
  const used = async () =>
    ((await engine.get("/tenants/acme")).json as { usage: Record<string, number> }).usage[
      "retained_audit_records"
    ];
  const id = await engine.vm({ tenant_id: "acme" });
  await engine.request("DELETE", `/vms/${id}`);
  await engine.vm({ tenant_id: "other" });
  expect(await used()).toBe(3);
  await engine.restart();
  expect(await used()).toBe(3);
  await engine.post("/audit/runtime/prune", { keep_last: 2 });
  expect(await used()).toBe(1);
  await engine.vm({ tenant_id: "acme" });
  expect(await used()).toBe(2);
});

test("bad numbers are refused with 400", async () => {
  await using engine = await FakeEngine.open();
  expect((await engine.get("/audit/runtime?limit=x")).status).toBe(400);
  expect((await engine.get("/audit?limit=1001")).status).toBe(400);
  expect((await engine.post("/audit/runtime/prune", { keep_last: -1 })).status).toBe(400);
  expect((await engine.request("POST", "/audit/runtime/prune", { body: "{}" })).status).toBe(415);
});

test("a line that a crash cut off is skipped, and the next one is whole", async () => {
  await using engine = await FakeEngine.open();
  await engine.vm();
  const path = join(engine.engine.parts.paths.audit, "runtime-audit.jsonl");
  appendFileSync(path, '{"timestamp":"2026-');
  await engine.restart();
  await engine.vm();
  expect(await recordsOf(engine)).toHaveLength(2);
});

test("GET /audit tells requests, the newest first, by client, status and method", async () => {
  await using engine = await FakeEngine.open({ EPHEMERA_API_TOKENS: "ann:a,bob:b" });
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  await engine.request("GET", "/health", as("a"));
  await engine.request("GET", "/nowhere", as("b"));
  await engine.request("GET", "/health");
  await engine.request("DELETE", "/vms/vm-1", as("b"));
  const paths = async (query: string) => {
    const { json } = await engine.request("GET", `/audit${query}`, as("a"));
    return (json as { path: string }[]).map((record) => record.path);
  };
  expect(await paths("")).toEqual(["/vms/vm-1", "/health", "/nowhere", "/health"]);
  expect(await paths("?client=bob")).toEqual(["/vms/vm-1", "/nowhere"]);
  expect(await paths("?status=401")).toEqual(["/health"]);
  expect(await paths("?method=delete")).toEqual(["/vms/vm-1"]);
  expect(await paths("?limit=1")).toEqual(["/audit"]);
});
