import { expect, test } from "bun:test";
import { nearestName } from "../../../src/base/nearest-name.ts";

test("a slip of the hand finds what was meant", () => {
  expect(nearestName("timeot_s", ["command", "timeout_s"])).toBe("timeout_s");
  expect(nearestName("cwdd", ["stdin", "cwd"])).toBe("cwd");
});

test("a name that was cut short finds the whole one before any that looks alike", () => {
  expect(nearestName("IDLE", ["BASE", "IDLE_SECS"])).toBe("IDLE_SECS");
});

test("something else altogether finds nothing", () => {
  expect(nearestName("colour", ["command", "cwd", "stdin"])).toBeNull();
  expect(nearestName("x", [])).toBeNull();
});

test("the nearest wins, the first of equals", () => {
  expect(nearestName("abcd", ["abzz", "abcz", "abcy"])).toBe("abcz");
});
