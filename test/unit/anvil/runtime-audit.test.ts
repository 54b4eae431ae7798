import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { AdapterError, DaemonError } from "../../../src/anvil/adapter-error.ts";
import { auditedError } from "../../../src/anvil/call-audit.ts";
import { type AuditRecord, RuntimeAudit } from "../../../src/anvil/runtime-audit.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

let directory: TemporaryDirectory;
let path: string;
beforeEach(() => {
  directory = new TemporaryDirectory();
  path = directory.join("audit.jsonl");
});
afterEach(() => directory[Symbol.dispose]());

/** Another one each time, as other processes have: they share the file and nothing else. */
function audit(): RuntimeAudit {
  return new RuntimeAudit(path);
}

function record(second: number, tenantId = "team-1"): AuditRecord {
  const timestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const what = {
    tool_name: "anvil_list_flocks",
    daemon_operation: "GET /flocks",
    result_code: "success",
  } as const;
  return { timestamp, tenant_id: tenantId, ...what };
}

async function write(...records: AuditRecord[]): Promise<void> {
  for (const each of records) await audit().append(each);
}

test("records are appended, read oldest first, by tenant and newest first to go within a limit", async () => {
  await write(record(1), record(2, "other"), record(3));
  expect((await audit().read()).records).toEqual([record(1), record(2, "other"), record(3)]);
  expect((await audit().read({ tenantId: "team-1" })).records).toEqual([record(1), record(3)]);
  expect((await audit().read({ tenantId: "team-1", limit: 1 })).records).toEqual([record(3)]);
  expect((await audit().read({ limit: 0 })).records).toEqual([]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory.path)).toEqual(["audit.jsonl"]);
});

test("an audit that does not exist has no records", async () => {
  expect(await audit().read()).toEqual({ records: [], damagedLines: 0 });
  expect(await audit().prune({ keepLast: 1, maxAgeSeconds: 0 })).toBe(0);
});

test("a line that was cut short spoils neither the next one nor the reading", async () => {
  await write(record(1));
  appendFileSync(path, '{"timestamp":"2026-');
  await write(record(2));
  expect(await audit().read()).toEqual({ records: [record(1), record(2)], damagedLines: 1 });
});

test.each(["write", "read", "prune"] as const)("a symlink is refused to %s", async (what) => {
  writeFileSync(directory.join("target"), "");
  symlinkSync(directory.join("target"), path);
  const work = {
    write: () => audit().append(record(1)),
    read: () => audit().read(),
    prune: () => audit().prune({ keepLast: 1, maxAgeSeconds: 0 }),
  }[what];
  await expect(work()).rejects.toThrow(`${what} runtime audit ${JSON.stringify(path)}: it is a symlink`);
  expect(readFileSync(directory.join("target"), "utf8")).toBe("");
});

test("what is no regular file is refused, a pipe without waiting for its other end", async () => {
  Bun.spawnSync(["mkfifo", path]);
  await expect(audit().read()).rejects.toThrow("it is no regular file");
  await expect(audit().append(record(1))).rejects.toThrow("it is no regular file");
  path = directory.join("folder");
  mkdirSync(path);
  await expect(audit().append(record(1))).rejects.toThrow("write runtime audit");
});

test("a prune keeps the newest, or what is young enough, or both", async () => {
  const nowMs = Date.UTC(2026, 0, 1, 0, 0, 10);
  await write(...[1, 2, 3, 4, 5].map((second) => record(second)));
  expect(await audit().prune({ keepLast: 0, maxAgeSeconds: 0 }, nowMs)).toBe(5);
  expect(await audit().prune({ keepLast: 0, maxAgeSeconds: 8 }, nowMs)).toBe(4);
  expect(await audit().prune({ keepLast: 2, maxAgeSeconds: 8 }, nowMs)).toBe(2);
  expect((await audit().read()).records).toEqual([record(4), record(5)]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("negative limits of a prune are refused", async () => {
  await expect(audit().prune({ keepLast: -1, maxAgeSeconds: 0 })).rejects.toThrow(
    "keep_last must be non-negative",
  );
  await expect(audit().prune({ keepLast: 0, maxAgeSeconds: -1 })).rejects.toThrow(
    "max_age_seconds must be non-negative",
  );
});

test("nothing that is appended while a prune runs is lost", async () => {
  const nowMs = Date.UTC(2026, 0, 1, 0, 0, 10);
  const young = Array.from({ length: 20 }, (_, index) => record(10 + index));
  for (let round = 0; round < 5; round++) {
    await write(record(1), record(2));
    const one = audit();
    const appends = young.map((each) => one.append(each));
    // It rewrites the file, without the two old ones
    await Promise.all([audit().prune({ keepLast: 0, maxAgeSeconds: 5 }, nowMs), ...appends]);
    expect((await one.read()).records).toEqual(young);
    rmSync(path);
  }
});

test("of an error only what is safe is kept", () => {
  expect(auditedError(new DaemonError(409, "secret body"))).toBe("daemon returned status 409");
  for (const word of ["agent_token", "Authorization", "BEARER x", "a secret", "Token"])
    expect(auditedError(new Error(`it had ${word} in it`))).toBe("operation failed");
  expect(auditedError(new Error(" "))).toBe("operation failed");
  expect(auditedError(new Error("x".repeat(300)))).toBe(`${"x".repeat(240)}...`);
  expect(auditedError(new Error("plain"))).toBe("plain");
  const unfinished = new AdapterError("unfinished", "done with body xyz", new DaemonError(500, "xyz"));
  expect(auditedError(unfinished)).toBe("daemon returned status 500");
});
