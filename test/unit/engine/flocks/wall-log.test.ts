import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { openWallFile } from "../../../../src/engine/flocks/wall/wall-file.ts";
import type { WallLog } from "../../../../src/engine/flocks/wall/wall-log.ts";
import { rejection } from "../../../support/rejection.ts";
import { IN_MEMORY, TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { allOf, Logged, openLog } from "./open-wall.ts";

const FILE = "townwall.log";
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("two\nlines", '{"seq":99}\n', "\0", "\ud800", "[2026-01-01T00:00:00Z] <a> b", "\r\n\u2028"),
);

async function appendAll(log: WallLog, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await log.append("worker-1", body);
}

describe("the log of a wall", () => {
  test("keeps any authors and bodies through a restart and any rotation, numbered without gaps", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 30 }), async (messages) => {
        using dir = new TemporaryDirectory(IN_MEMORY);
        const half = messages.length >> 1;
        for (const part of [messages.slice(0, half), messages.slice(half)]) {
          const log = await openLog(dir.path, { maxBytes: 200, keep: 1000 });
          await Promise.all(part.map(([author, body]) => log.append(author, body)));
          await log.close();
        }
        const log = await openLog(dir.path);
        const kept = allOf(log);
        await log.close();
        expect(kept.map(({ agent_id, body }) => [agent_id, body])).toEqual(messages);
        expect(kept.map(({ seq }) => seq)).toEqual(messages.map((_, at) => at + 1));
      }),
      { numRuns: 50 },
    );
  });

  test("says when, in whole seconds of UTC", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { now: () => Date.parse("2026-02-03T04:05:06.789Z") });
    expect(await log.append("a-1", "x")).toEqual({
      seq: 1,
      timestamp: "2026-02-03T04:05:06Z",
      agent_id: "a-1",
      body: "x",
    });
    await log.close();
    expect(statSync(dir.join(FILE)).mode & 0o777).toBe(0o600);
  });

  test("cut at any byte it has all whole messages, says so, and goes on with the next number", async () => {
    using dir = new TemporaryDirectory(IN_MEMORY);
    const log = await openLog(dir.path);
    const bodies = ["one", "two\nlines", "drei – ünïcode", "4"];
    await appendAll(log, bodies);
    await log.close();
    const whole = readFileSync(dir.join(FILE));
    for (let size = 0; size <= whole.length; size++) {
      writeFileSync(dir.join(FILE), whole.subarray(0, size));
      const logged = new Logged();
      const torn = await openLog(dir.path, { log: logged });
      const count = whole.subarray(0, size).filter((byte) => byte === 0x0a).length;
      const isTorn = size > 0 && whole[size - 1] !== 0x0a;
      expect(logged.lines).toEqual(
        isTorn ? ["warn the last message of a wall was torn; it was cut off"] : [],
      );
      expect((await torn.append("b-1", "next")).seq).toBe(count + 1);
      expect(allOf(torn).map(({ body }) => body)).toEqual([...bodies.slice(0, count), "next"]);
      await torn.close();
    }
  });

  test("a damaged line is told and left out, and no number is given out twice", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path);
    await appendAll(log, ["one", "two", "three"]);
    await log.close();
    const lines = readFileSync(dir.join(FILE), "utf8").trimEnd().split("\n");
    writeFileSync(dir.join(FILE), `${[lines[0], "rubbish", '{"seq":-1}'].join("\n")}\n`);
    const logged = new Logged();
    const damaged = await openLog(dir.path, { log: logged });
    expect(logged.lines).toEqual(["error lines of a wall are damaged; they are left out"]);
    expect((await damaged.append("a-1", "four")).seq).toBe(4);
    expect(allOf(damaged).map(({ body }) => body)).toEqual(["one", "four"]);
    await damaged.close();
  });

  test("zeros that a crash left behind the end are cut off", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path);
    await appendAll(log, ["one"]);
    await log.close();
    appendFileSync(dir.join(FILE), Buffer.alloc(5000));
    const again = await openLog(dir.path);
    expect((await again.append("a-1", "two")).seq).toBe(2);
    expect(allOf(again)).toHaveLength(2);
    await again.close();
  });

  test("does not write through a link", async () => {
    using dir = new TemporaryDirectory();
    const victim = dir.join("victim");
    writeFileSync(victim, "");
    mkdirSync(dir.join("wall"));
    symlinkSync(victim, dir.join("wall", FILE));
    expect(await rejection(openLog(dir.join("wall")))).toMatchObject({ code: "ELOOP" });
    expect(readFileSync(victim, "utf8")).toBe("");
  });
});

describe("a full file of a wall", () => {
  test.each([0, 1, 3])(
    "is set aside, %i older ones are kept, and numbers go on through restarts",
    async (keep) => {
      using dir = new TemporaryDirectory();
      let posted = 0;
      for (let round = 0; round < 3; round++) {
        const log = await openLog(dir.path, { maxBytes: 1000, keep });
        for (let at = 0; at < 40; at++)
          expect((await log.append("a-1", `message ${posted}`)).seq).toBe(++posted);
        const kept = allOf(log);
        expect(kept.map(({ seq }) => seq)).toEqual(kept.map((_, at) => posted - kept.length + at + 1));
        await log.close();
      }
      const older = Array.from({ length: keep }, (_, at) => `${FILE}.${at + 1}`);
      expect(readdirSync(dir.path).sort()).toEqual([FILE, ...older]);
      for (const name of [FILE, ...older]) expect(statSync(dir.join(name)).size).toBeLessThanOrEqual(1000);
    },
  );

  test("holds a message that is larger than a file may be", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { maxBytes: 100, keep: 2 });
    const bodies = ["small", "\u0001".repeat(1_048_576), "small too"];
    await appendAll(log, bodies);
    expect(allOf(log).map(({ body }) => body)).toEqual(bodies);
    await log.close();
  });

  test("loses nothing when the engine is killed between any two renames", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { maxBytes: 200, keep: 3 });
    await appendAll(log, ["one", "two", "three", "four", "five", "six"]);
    await log.close();
    const names = readdirSync(dir.path);
    expect(names.sort()).toEqual([FILE, `${FILE}.1`, `${FILE}.2`]);
    const renames = [
      [`${FILE}.2`, `${FILE}.3`],
      [`${FILE}.1`, `${FILE}.2`],
      [FILE, `${FILE}.1`],
    ] as const;
    for (let done = 0; done <= renames.length; done++) {
      const crashed = dir.join(`crashed-${done}`);
      mkdirSync(crashed);
      for (const name of names) copyFileSync(dir.join(name), join(crashed, name));
      for (const [from, to] of renames.slice(0, done)) renameSync(join(crashed, from), join(crashed, to));
      const next = await openLog(crashed, { maxBytes: 200, keep: 3 });
      expect(allOf(next).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
      expect((await next.append("a-1", "seven")).seq).toBe(7);
      expect((await next.append("a-1", "eight")).seq).toBe(8);
      await next.close();
      const later = await openLog(crashed, { maxBytes: 200, keep: 3 });
      expect(allOf(later).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      await later.close();
    }
  });

  test("is found by a reader that was in it, or told to be gone", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { maxBytes: 100, keep: 1 });
    await appendAll(log, ["one", "two"]);
    const first = log.read(0)!;
    expect(first.messages.map(({ seq }) => seq)).toEqual([1]);
    await appendAll(log, ["three", "four"]);
    expect(log.read(0)).toBeNull();
    expect(log.read(first.next)).toBeNull();
    expect(log.read(log.start)!.messages.map(({ seq }) => seq)).toEqual([3]);
    await log.close();
  });
});

describe("a write that fails", () => {
  /** Fails write number `at` after `written` bytes of it. */
  function failing(at: number, written: number, code: string, cutFails = false) {
    let count = 0;
    let isBroken = false;
    return async (path: string) => {
      const file = await openWallFile(path);
      return {
        ...file,
        async write(bytes: Uint8Array, offset: number) {
          if (count++ !== at) return await file.write(bytes, offset);
          await file.write(bytes.subarray(0, written), offset);
          isBroken = cutFails;
          throw Object.assign(new Error(code), { code });
        },
        async cut(size: number) {
          if (isBroken) {
            isBroken = false;
            throw new Error("no cut");
          }
          await file.cut(size);
        },
      };
    };
  }

  test.each([
    ["ENOSPC", 507, "the disk is full; the message was not posted"],
    ["EIO", 500, "the message could not be written"],
  ])(
    "with %s is told, leaves nothing of its message, and its number goes to the next",
    async (code, status, error) => {
      for (let written = 0; written < 80; written += 7) {
        for (const cutFails of [false, true]) {
          using dir = new TemporaryDirectory(IN_MEMORY);
          const log = await openLog(dir.path, { openFile: failing(1, written, code, cutFails) });
          await log.append("a-1", "one");
          const failure = await rejection(log.append("a-1", "lost, and longer than what comes"));
          expect(failure).toMatchObject({ status, body: { error } });
          expect((await log.append("a-1", "two")).seq).toBe(2);
          await log.close();
          const again = await openLog(dir.path);
          expect(allOf(again).map(({ body }) => body)).toEqual(["one", "two"]);
          await again.close();
        }
      }
    },
  );

  test("to a new file leaves the old one in its place", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { maxBytes: 100, openFile: failing(1, 5, "ENOSPC") });
    await log.append("a-1", "one");
    expect(await rejection(log.append("a-1", "two"))).toMatchObject({ status: 507 });
    expect(readdirSync(dir.path)).toEqual([FILE]);
    expect((await log.append("a-1", "two")).seq).toBe(2);
    expect(existsSync(dir.join(`${FILE}.1`))).toBe(true);
    await log.close();
  });

  test("because the names cannot be changed leaves every message readable", async () => {
    using dir = new TemporaryDirectory();
    const log = await openLog(dir.path, { maxBytes: 100, keep: 2 });
    await appendAll(log, ["one", "two"]);
    mkdirSync(dir.join(`${FILE}.2`, "in-the-way"), { recursive: true });
    expect(await rejection(log.append("a-1", "three"))).toMatchObject({ status: 500 });
    expect(allOf(log).map(({ seq }) => seq)).toEqual([1, 2]);
    rmSync(dir.join(`${FILE}.2`), { recursive: true });
    expect((await log.append("a-1", "three")).seq).toBe(3);
    expect(allOf(log).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await log.close();
  });
});

test("posts that wait for one write are written together, in their order", async () => {
  using dir = new TemporaryDirectory();
  let writes = 0;
  const log = await openLog(dir.path, {
    openFile: async (path) => {
      const file = await openWallFile(path);
      const write = (bytes: Uint8Array, offset: number) => {
        writes++;
        return file.write(bytes, offset);
      };
      return { ...file, write };
    },
  });
  const messages = await Promise.all(Array.from({ length: 1000 }, (_, at) => log.append("a-1", `${at}`)));
  expect(messages.map(({ seq, body }) => seq - Number(body))).toEqual(messages.map(() => 1));
  expect(writes).toBeLessThan(100);
  await log.close();
});
