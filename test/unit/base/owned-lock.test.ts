import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { acquireLock } from "../../../src/base/owned-lock.ts";
import { identityOf } from "../../../src/base/process-identity.ts";
import { deadIdentity, IdleProcess } from "../../support/idle-process.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const NEVER = new AbortController().signal;

/** Acquires, counts who is inside at the same time, and releases. */
async function visit(path: string, inside: { now: number; most: number }): Promise<void> {
  await using _lock = await acquireLock(path, NEVER);
  inside.now++;
  inside.most = Math.max(inside.most, inside.now);
  await Bun.sleep(1);
  inside.now--;
}

test("a lock names its owner, and releasing it leaves nothing", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("lock");
  const lock = await acquireLock(path, NEVER);
  expect(readFileSync(path, "utf8")).toBe(identityOf(process.pid)!);
  await lock[Symbol.asyncDispose]();
  expect(readdirSync(directory.path)).toEqual([]);
});

test("a dead owner's lock is taken over without waiting", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("lock");
  writeFileSync(path, await deadIdentity());
  const waits: string[] = [];
  {
    await using _lock = await acquireLock(path, NEVER, (holder) => waits.push(holder));
    expect(readFileSync(path, "utf8")).toBe(identityOf(process.pid)!);
  }
  expect(waits).toEqual([]);
  expect(readdirSync(directory.path)).toEqual([]);
});

test("a lock whose content names nobody is taken over", async () => {
  using directory = new TemporaryDirectory();
  writeFileSync(directory.join("lock"), "");
  await using _lock = await acquireLock(directory.join("lock"), NEVER);
});

test("a live owner is waited for, and named", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("lock");
  const owner = new IdleProcess();
  writeFileSync(path, owner.identity);
  const holders: string[] = [];
  const told = Promise.withResolvers<void>();
  const acquiring = acquireLock(path, NEVER, (holder) => {
    holders.push(holder);
    told.resolve();
  });
  await told.promise;
  expect(holders[0]).toBe(owner.identity);
  await owner[Symbol.asyncDispose]();
  await using _lock = await acquiring;
  expect(readFileSync(path, "utf8")).toBe(identityOf(process.pid)!);
});

test("a caller that gives up leaves nothing", async () => {
  using directory = new TemporaryDirectory();
  await using owner = new IdleProcess();
  writeFileSync(directory.join("lock"), owner.identity);
  const caller = new AbortController();
  const acquiring = acquireLock(directory.join("lock"), caller.signal, () =>
    caller.abort(new Error("enough")),
  );
  expect((await rejection(acquiring)).message).toBe("enough");
  expect(readdirSync(directory.path)).toEqual(["lock"]);
});

test("of many at once only one is inside", async () => {
  using directory = new TemporaryDirectory();
  const inside = { now: 0, most: 0 };
  await Promise.all(Array.from({ length: 10 }, () => visit(directory.join("lock"), inside)));
  expect(inside).toEqual({ now: 0, most: 1 });
  expect(readdirSync(directory.path)).toEqual([]);
});

test("of many that find a dead owner at once only one is inside", async () => {
  using directory = new TemporaryDirectory();
  const dead = await deadIdentity();
  const inside = { now: 0, most: 0 };
  const rounds = Array.from({ length: 8 }, (_, round) => directory.join(`lock-${round}`));
  const visits = rounds.map(async (path) => {
    writeFileSync(path, dead);
    writeFileSync(`${path}.turn`, dead);
    const own = { now: 0, most: 0 };
    await Promise.all(Array.from({ length: 4 }, () => visit(path, own)));
    inside.most = Math.max(inside.most, own.most);
  });
  await Promise.all(visits);
  expect(inside.most).toBe(1);
  expect(readdirSync(directory.path)).toEqual([]);
});

test("processes exclude each other", async () => {
  using directory = new TemporaryDirectory();
  writeFileSync(directory.join("lock"), await deadIdentity());
  const modulePath = resolve(import.meta.dir, "../../../src/base/owned-lock.ts");
  const script = `
    import { appendFileSync } from "node:fs";
    import { acquireLock } from ${JSON.stringify(modulePath)};
    const [path, log] = process.argv.slice(-2);
    for (let round = 0; round < 3; round++) {
      await using lock = await acquireLock(path, new AbortController().signal);
      appendFileSync(log, "in ");
      await Bun.sleep(2);
      appendFileSync(log, "out ");
    }`;
  const children = Array.from({ length: 3 }, () =>
    Bun.spawn([process.execPath, "-e", script, directory.join("lock"), directory.join("log")], {
      stdin: "ignore",
    }),
  );
  expect(await Promise.all(children.map((child) => child.exited))).toEqual([0, 0, 0]);
  expect(readFileSync(directory.join("log"), "utf8")).toBe("in out ".repeat(9));
  expect(readdirSync(directory.path)).toEqual(["log"]);
});
