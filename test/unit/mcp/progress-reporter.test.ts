import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { ProgressReporter, type ProgressUpdate } from "../../../src/mcp/progress-reporter.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function recorder() {
  const updates: ProgressUpdate[] = [];
  return { updates, reporter: new ProgressReporter("run", (update) => updates.push(update)) };
}

test("the first state is told at once, later ones once a second, the latest wins", () => {
  const { updates, reporter } = recorder();
  for (const state of ["first", "second", "third"]) reporter.report(state);
  expect(updates).toEqual([{ progress: 1, message: "first" }]);
  jest.advanceTimersByTime(1000);
  expect(updates.slice(1)).toEqual([{ progress: 2, message: "third" }]);
});

test("a state that lasts is told again with the time it has taken, and numbers only rise", () => {
  const { updates, reporter } = recorder();
  reporter.report("running");
  jest.advanceTimersByTime(20_000);
  expect(updates.map((update) => update.message)).toEqual(["running", "running (10 s)", "running (20 s)"]);
  expect(updates.map((update) => update.progress)).toEqual([1, 2, 3]);
});

test("a call that reports nothing is known to be alive all the same", () => {
  const { updates } = recorder();
  jest.advanceTimersByTime(20_000);
  expect(updates).toEqual([
    { progress: 1, message: "run (10 s)" },
    { progress: 2, message: "run (20 s)" },
  ]);
});

test("nothing is told after the call has ended", () => {
  const { updates, reporter } = recorder();
  reporter.report("first");
  reporter.report("second");
  reporter[Symbol.dispose]();
  jest.advanceTimersByTime(60_000);
  expect(updates).toHaveLength(1);
});
