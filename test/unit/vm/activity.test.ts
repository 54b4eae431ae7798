import { expect, test } from "bun:test";
import { Activity } from "../../../src/vm/activity.ts";

const unending = new AbortController().signal;
const LONG_MS = 60_000;

test("without calls it is quiet at once", async () => {
  await new Activity().quiet(LONG_MS, unending);
});

test("with calls it is quiet when the last of them has ended", async () => {
  const activity = new Activity();
  const first = activity.begin();
  const second = activity.begin();
  let isQuiet = false;
  const quiet = activity.quiet(LONG_MS, unending).then(() => {
    isQuiet = true;
  });
  first[Symbol.dispose]();
  await Bun.sleep(0);
  expect(isQuiet).toBe(false);
  second[Symbol.dispose]();
  await quiet;
  expect(isQuiet).toBe(true);
});

test("a wait for quiet ends after its limit, and with its signal", async () => {
  const activity = new Activity();
  using _call = activity.begin();
  await activity.quiet(1, unending);
  const stop = new AbortController();
  const waiting = activity.quiet(LONG_MS, stop.signal);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});

test("whoever watches is told at once, of the first call and of the end of the last, until it has enough", () => {
  const activity = new Activity();
  const told: boolean[] = [];
  const watch = activity.watch((isBusy) => told.push(isBusy));
  const first = activity.begin();
  activity.watch((isBusy) => told.push(isBusy))[Symbol.dispose]();
  const second = activity.begin();
  first[Symbol.dispose]();
  expect(told).toEqual([false, true, true]);
  second[Symbol.dispose]();
  expect(told).toEqual([false, true, true, false]);
  watch[Symbol.dispose]();
  using _third = activity.begin();
  expect(told).toHaveLength(4);
});
