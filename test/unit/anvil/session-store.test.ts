import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { SessionStore } from "../../../src/anvil/session-store.ts";
import { identityOf } from "../../../src/base/process-identity.ts";
import { deadIdentity, IdleProcess } from "../../support/idle-process.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

let directory: TemporaryDirectory;
beforeEach(() => {
  directory = new TemporaryDirectory();
});
afterEach(() => directory[Symbol.dispose]());

const storePath = () => directory.join("new", "deep", "sessions.json");
const open = (path: string | null) => SessionStore.open(path, new AbortController().signal);
const modeOf = (path: string) => statSync(path).mode & 0o777;

test("without a path nothing is written and names end with the store", async () => {
  await using store = await open(null);
  await store.bind("work", "vm-1");
  expect(await store.resolve("", "work")).toBe("vm-1");
  expect(readdirSync(directory.path)).toEqual([]);
});

test("new directories and the file are private, and an existing directory keeps its mode", async () => {
  chmodSync(directory.path, 0o755);
  await using store = await open(storePath());
  await store.bind("work", "vm-1");
  expect(modeOf(directory.path)).toBe(0o755);
  expect(modeOf(directory.join("new"))).toBe(0o700);
  expect(modeOf(directory.join("new", "deep"))).toBe(0o700);
  expect(modeOf(storePath())).toBe(0o600);
  expect(readdirSync(directory.join("new", "deep")).toSorted()).toEqual([
    "sessions.json",
    "sessions.json.lock",
  ]);
});

test("what was saved is there again, with names of any kind", async () => {
  const names = ["work", "a b", "__proto__", "é"];
  {
    await using store = await open(storePath());
    for (const name of names) await store.bind(name, `vm-of-${name.length}`);
    await store.removeVm("vm-of-3");
  }
  await using store = await open(storePath());
  await expect(store.resolve("", "a b")).rejects.toThrow('unknown session "a b"');
  expect(await store.resolve("", "__proto__")).toBe("vm-of-9");
  expect(JSON.parse(readFileSync(storePath(), "utf8"))).toHaveProperty("sessions.work", "vm-of-4");
});

test.each(["", "{", "[]", "null", "{}", '{"sessions":[]}', '{"sessions":{"a":1}}', '{"sessions":{"":"vm"}}'])(
  "a file of %j is refused, kept, and not claimed",
  async (text) => {
    const path = directory.join("sessions.json");
    writeFileSync(path, text);
    const { message } = await rejection(open(path));
    expect(message).toStartWith(`load session store "${path}": `);
    expect(readFileSync(path, "utf8")).toBe(text);
    expect(readdirSync(directory.path)).toEqual(["sessions.json"]);
  },
);

test("a store belongs to the process from its first turn on, and until its end", async () => {
  const path = directory.join("sessions.json");
  await using second = await open(path);
  {
    await using first = await open(path);
    expect(readdirSync(directory.path)).toEqual([]);
    await first.bind("work", "vm-1");
    expect(readdirSync(directory.path)).toContain("sessions.json.lock");
  }
  expect(await second.resolve("", "work")).toBe("vm-1"); // saved after the second one was opened
});

test("a store that a live process keeps is refused with its pid, and a dead one's is taken over", async () => {
  const path = directory.join("sessions.json");
  await using store = await open(path);
  {
    await using other = new IdleProcess();
    writeFileSync(`${path}.lock`, identityOf(other.pid)!);
    const { message } = await rejection(store.refuseTaken("work"));
    expect(message).toContain(`is used by process ${other.pid}, and one process may write it.`);
  }
  await store.bind("work", "vm-1");
  writeFileSync(`${path}.lock`, await deadIdentity());
  await using next = await open(path);
  expect(await next.resolve("", "work")).toBe("vm-1");
}, 20_000);

test("who waits for a store stops with the end of all", async () => {
  const path = directory.join("sessions.json");
  await using other = new IdleProcess();
  writeFileSync(`${path}.lock`, identityOf(other.pid)!);
  const end = new AbortController();
  await using store = await SessionStore.open(path, end.signal);
  const refused = rejection(store.refuseTaken("work"));
  end.abort(new Error("the end."));
  expect((await refused).message).toBe(`lock session store "${path}": the end.`);
});

test("the rules of names", async () => {
  await using store = await open(null);
  await store.bind("work", "vm-1");
  expect(await store.resolve("vm-2", "work")).toBe("vm-2");
  expect(await store.resolve("vm-2", "nobody")).toBe("vm-2");
  await expect(store.resolve("", "")).rejects.toThrow("vm ID or session name is required");
  await expect(store.resolve("", "nobody")).rejects.toThrow('unknown session "nobody"');
  await expect(store.bind("work", "vm-2")).rejects.toThrow('session "work" already exists');
  await expect(store.refuseTaken("work")).rejects.toThrow('session "work" already exists');
  await expect(store.bind("", "vm-2")).rejects.toThrow("session name must be non-empty");
  await expect(store.bind("x", "")).rejects.toThrow("vm ID must be non-empty");
});

test("all names of a VM go at once, and come back together when that cannot be saved", async () => {
  const path = directory.join("sessions.json");
  await using store = await open(path);
  await store.bind("a", "vm-1");
  await store.bind("b", "vm-1");
  await store.bind("c", "vm-2");
  rmSync(path);
  mkdirSync(path);
  await expect(store.removeVm("vm-1")).rejects.toThrow("save session store");
  expect([await store.resolve("", "a"), await store.resolve("", "b")]).toEqual(["vm-1", "vm-1"]);
  rmSync(path, { recursive: true });
  await store.removeVm("vm-1");
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ sessions: { c: "vm-2" } });
});

test("a reader never sees a change that is then undone", async () => {
  const path = directory.join("sessions.json");
  await using store = await open(path);
  await store.refuseTaken("work"); // reads the file
  mkdirSync(path);
  const bound = rejection(store.bind("work", "vm-1"));
  const seen = rejection(store.resolve("", "work"));
  expect((await bound).message).toContain("save session store");
  expect((await seen).message).toBe('unknown session "work"');
});

test("many changes at once are all saved", async () => {
  const path = directory.join("sessions.json");
  {
    await using store = await open(path);
    await Promise.all(Array.from({ length: 50 }, (_, index) => store.bind(`s${index}`, `vm-${index}`)));
  }
  expect(Object.keys(JSON.parse(readFileSync(path, "utf8")).sessions)).toHaveLength(50);
  expect(readdirSync(directory.path)).toEqual(["sessions.json"]);
});
