import { expect, test } from "bun:test";
import { AtMost, atMost } from "../../../src/base/at-most.ts";
import { rejection } from "../../support/rejection.ts";

const { signal: FOREVER } = new AbortController();

test("two at once, the others in their order, and one that gives up takes no turn", async () => {
  const turns = new AtMost(2);
  const begun: number[] = [];
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const leaving = new AbortController();
  const run = (n: number, signal = FOREVER) =>
    turns.run(async () => {
      begun.push(n);
      await gates[n]!.promise;
      if (n === 0) throw new Error("it failed");
    }, signal);
  const [first, second, third, fourth] = [run(0), run(1), run(2, leaving.signal), run(3)];
  await Bun.sleep(0);
  expect(begun).toEqual([0, 1]);
  leaving.abort(new Error("the client left"));
  expect((await rejection(third)).message).toBe("the client left");
  gates[0]!.resolve();
  expect((await rejection(first)).message).toBe("it failed");
  gates[1]!.resolve();
  await second;
  const fifth = run(4);
  await Bun.sleep(0);
  expect(begun).toEqual([0, 1, 3, 4]);
  gates[3]!.resolve();
  gates[4]!.resolve();
  await Promise.all([fourth, fifth]);
});

test("everything is done, never more at once than the limit", async () => {
  const done: number[] = [];
  let underWay = 0;
  let most = 0;
  await atMost(3, Array(10).keys(), async (item) => {
    most = Math.max(most, ++underWay);
    await Bun.sleep(1);
    underWay--;
    done.push(item);
  });
  expect([most, done.sort((a, b) => a - b)]).toEqual([3, [...Array(10).keys()]]);
  await atMost(3, [], () => Promise.reject(new Error("there is nothing to do")));
});

test("nothing is begun after a failure, which is told", async () => {
  const begun: number[] = [];
  const failing = atMost(2, Array(10).keys(), async (item) => {
    begun.push(item);
    await Promise.resolve();
    throw new Error(`${item} failed`);
  });
  expect((await rejection(failing)).message).toBe("0 failed");
  expect(begun).toEqual([0, 1]);
});
