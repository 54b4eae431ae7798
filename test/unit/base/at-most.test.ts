import { expect, test } from "bun:test";
import { atMost } from "../../../src/base/at-most.ts";
import { rejection } from "../../support/rejection.ts";

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
