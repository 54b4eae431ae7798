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
  expect(updates.slice(1)).toEqual([{ progress: 2, message: "third (1 s)" }]);
});

test("a state that lasts is told again with the time it has taken, and numbers only rise", () => {
  const { updates, reporter } = recorder();
  reporter.report("running");
  jest.advanceTimersByTime(3000);
  expect(updates.map((update) => update.message)).toEqual([
    "running",
    "running (1 s)",
    "running (2 s)",
    "running (3 s)",
  ]);
  expect(updates.map((update) => update.progress)).toEqual([1, 2, 3, 4]);
});

test("a call that reports nothing is known to be alive all the same", () => {
  const { updates } = recorder();
  jest.advanceTimersByTime(2000);
  expect(updates).toEqual([
    { progress: 1, message: "run (1 s)" },
    { progress: 2, message: "run (2 s)" },
  ]);
});

test("a quoted line stands alone, until our own state is news again", () => {
  const { updates, reporter } = recorder();
  reporter.quote("compiling a.c");
  reporter.quote("compiling b.c");
  jest.advanceTimersByTime(1000);
  reporter.report("ending");
  jest.advanceTimersByTime(1000);
  expect(updates.map((update) => update.message)).toEqual(["compiling a.c", "compiling b.c", "ending (2 s)"]);
});

test("nothing is told after the call has ended", () => {
  const { updates, reporter } = recorder();
  reporter.report("first");
  reporter.report("second");
  reporter[Symbol.dispose]();
  jest.advanceTimersByTime(60_000);
  expect(updates).toHaveLength(1);
});
