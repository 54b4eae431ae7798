import { describe, expect, test } from "bun:test";
import { isWanted, TIME_PATTERN, type WallFilter } from "../../../../src/engine/flocks/wall/wall-filter.ts";
import type { WallReader } from "../../../../src/engine/flocks/wall/wall-reader.ts";
import { rejection } from "../../../support/rejection.ts";
import { TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { openWall } from "./open-wall.ts";

const never = new AbortController().signal;
const MIB = 1_048_576;

/** Numbers of `count` messages, or of all until the end. */
async function numbers(reader: WallReader, count = Number.POSITIVE_INFINITY): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const messages = await reader.next();
    if (messages === null) break;
    found.push(...messages.map(({ seq }) => seq));
  }
  return found;
}

const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);

describe("the history of a wall", () => {
  test("is filtered by author, text and time, the limits included", () => {
    const message = { seq: 1, timestamp: "2026-01-02T03:04:05Z", agent_id: "a-1", body: "deploy done" };
    const at = Date.parse(message.timestamp);
    const wanted: [WallFilter, boolean][] = [
      [{}, true],
      [{ agentId: "a-1", contains: "done", since: at, until: at }, true],
      [{ agentId: "a-2" }, false],
      [{ contains: "Done" }, false],
      [{ since: at + 1 }, false],
      [{ until: at - 1 }, false],
    ];
    for (const [filter, is] of wanted) expect(isWanted(message, filter)).toBe(is);
  });

  test("times are RFC 3339 and nothing else", () => {
    for (const text of ["2026-01-02T03:04:05.5+01:00", "2026-01-02t03:04:05z", "2026-12-31T23:59:59-23:59"]) {
      expect(text).toMatch(TIME_PATTERN);
      expect(Date.parse(text)).not.toBeNaN();
    }
    for (const text of ["yesterday", "2026-01-02", "2026-01-02T03:04Z", "2026-01-02 03:04:05Z", "1700000000"])
      expect(text).not.toMatch(TIME_PATTERN);
    for (const text of [
      "2026-13-02T03:04:05Z",
      "2026-00-02T03:04:05Z",
      "2026-01-32T03:04:05Z",
      "2026-01-02T24:04:05Z",
    ])
      expect(text).not.toMatch(TIME_PATTERN);
  });

  test("of more than 32 MiB has the newest", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path, { keep: 9 });
    for (let at = 0; at < 36; at++) await wall.post("a-1", "x".repeat(MIB));
    await wall.post("a-2", "small");
    expect((await wall.history({}, never)).map(({ seq }) => seq)).toEqual(upTo(37).slice(-32));
    expect((await wall.history({ agentId: "a-2" }, never)).map(({ body }) => body)).toEqual(["small"]);
    await wall.close();
  });

  test("is given up with its signal", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path);
    await wall.post("a-1", "one");
    expect(await rejection(wall.history({}, AbortSignal.abort(new Error("gone"))))).toMatchObject({
      message: "gone",
    });
    await wall.close();
  });
});

describe("a reader of a wall", () => {
  test("gets each message once and in order, wherever it begins and whatever is posted meanwhile", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path, { maxBytes: 4000, keep: 1000 });
    const readers: Promise<number[]>[] = [];
    const posts: Promise<unknown>[] = [];
    for (let at = 1; at <= 300; at++) {
      posts.push(wall.post("a-1", `message ${at}`));
      if (at % 10 === 0) readers.push(numbers(wall.read(), 300));
      if (at % 7 === 0) await Bun.sleep(0);
    }
    await Promise.all(posts);
    for (const reader of readers) expect(await reader).toEqual(upTo(300));
    await wall.close();
  });

  test("that falls behind is cut off and holds up no post, and the others read on", async () => {
    for (const [count, body] of [
      [40_000, ""],
      [12, "x".repeat(MIB)],
    ] as const) {
      using dir = new TemporaryDirectory();
      const wall = await openWall(dir.path);
      const fast = numbers(wall.read(), count + 1);
      const slow = wall.read();
      // It has caught up when it waits for more, and from then on asks for nothing.
      const pending = slow.next();
      await wall.post("a-1", "first");
      expect(await pending).toHaveLength(1);
      for (let at = 0; at < count; ) {
        const some = Math.min(1000, count - at);
        await Promise.all(Array.from({ length: some }, () => wall.post("a-1", body)));
        at += some;
      }
      expect(await slow.next()).toBeNull();
      expect(await fast).toEqual(upTo(count + 1));
      await wall.close();
    }
  });

  test("whose next message is not kept any more is cut off", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path, { maxBytes: 1000, keep: 1 });
    for (let at = 0; at < 5; at++) await wall.post("a-1", "before");
    const reader = wall.read();
    for (let at = 0; at < 100; at++) await wall.post("a-1", "flood");
    expect(await reader.next()).toBeNull();
    await wall.close();
  });

  test("gets what was posted before the wall closed, and then the end", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path);
    const caughtUp = wall.read();
    const pending = numbers(caughtUp);
    await wall.post("a-1", "one");
    const late = wall.read();
    const last = wall.post("a-1", "two");
    await wall.close();
    await wall.close();
    expect((await last).seq).toBe(2);
    expect(await pending).toEqual([1, 2]);
    expect(await numbers(late)).toEqual([1, 2]);
    expect(await rejection(wall.post("a-1", "three"))).toMatchObject({ status: 404 });
    expect(() => wall.read()).toThrow("flock not found");
  });

  test("is refused when there are 256, and has room again when one goes", async () => {
    using dir = new TemporaryDirectory();
    const wall = await openWall(dir.path);
    const readers = Array.from({ length: 256 }, () => wall.read());
    expect(() => wall.read()).toThrow("the wall has 256 readers already");
    readers[0]!.cutOff();
    wall.read();
    await wall.close();
  });
});
