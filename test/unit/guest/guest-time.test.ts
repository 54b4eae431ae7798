import { afterEach, expect, setSystemTime, test } from "bun:test";
import { DeadlineError } from "../../../src/base/wait.ts";
import { GuestTime } from "../../../src/guest/guest-time.ts";
import { rejection } from "../../support/rejection.ts";

afterEach(() => {
  setSystemTime();
});

test("a deadline passes while the machine runs, and not while it stands still", async () => {
  const time = new GuestTime();
  const never = new Promise<never>(() => undefined);
  time.stop();
  let isLate = false;
  const late = rejection(time.within(never, 20, "an answer")).finally(() => {
    isLate = true;
  });
  await Bun.sleep(200);
  expect(isLate).toBe(false);
  time.goOn();
  expect(await late).toBeInstanceOf(DeadlineError);
});

test("a deadline that runs at a stop goes on afterwards, and one that is over does not come back", async () => {
  const time = new GuestTime();
  const passed: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  time.after(20, () => {
    passed.push("late");
    resolve();
  });
  time.after(10, () => passed.push("stopped"))();
  time.stop();
  await Bun.sleep(200);
  expect(passed).toEqual([]);
  time.goOn();
  await promise;
  time.stop();
  time.goOn();
  await Bun.sleep(50);
  expect(passed).toEqual(["late"]);
});

test("an answer and a caller who gives up are told while it stands still, and leave nothing behind", async () => {
  const time = new GuestTime();
  time.stop();
  expect(await time.within(Promise.resolve(7), 10, "an answer")).toBe(7);
  const caller = new AbortController();
  const waiting = rejection(time.within(new Promise(() => undefined), 10, "an answer", caller.signal));
  caller.abort(new Error("gone"));
  expect((await waiting).message).toBe("gone");
  time.goOn();
});

test("it tells how long the machine stood still, by the clock of the host", () => {
  const time = new GuestTime();
  expect(time.goOn()).toBe(0);
  setSystemTime(new Date("2026-01-01T00:00:00Z"));
  time.stop();
  time.stop();
  expect(time.isStopped).toBe(true);
  setSystemTime(new Date("2026-01-01T10:00:00Z"));
  expect(time.goOn()).toBe(36_000_000);
  time.stop();
  setSystemTime(new Date("2026-01-01T09:00:00Z"));
  expect([time.goOn(), time.isStopped]).toEqual([0, false]);
});
