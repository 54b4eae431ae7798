import { expect, test } from "bun:test";
import { DeadlineError, sleep, within } from "../../../src/base/wait.ts";
import { rejection } from "../../support/rejection.ts";

const PENDING = new Promise<never>(() => undefined);

test("a wait settles with what it waits for", async () => {
  expect(await within(Promise.resolve(7), 1000, "seven")).toBe(7);
  expect((await rejection(within(Promise.reject(new Error("no")), 1000, "seven"))).message).toBe("no");
});

test("a wait that is too long says for what", async () => {
  const error = await rejection(within(PENDING, 5, "the moon"));
  expect(error).toBeInstanceOf(DeadlineError);
  expect(error.message).toBe("timed out after 5 ms waiting for the moon");
});

test("a wait that is given up rejects with the caller's reason, before and during", async () => {
  const reason = new Error("enough");
  expect(await rejection(within(PENDING, 1000, "x", AbortSignal.abort(reason)))).toBe(reason);
  const caller = new AbortController();
  const waiting = within(PENDING, 1000, "x", caller.signal);
  caller.abort(reason);
  expect(await rejection(waiting)).toBe(reason);
});

test("what fails after it was given up is nobody's failure", async () => {
  const late = Promise.withResolvers<never>();
  await rejection(within(late.promise, 1000, "x", AbortSignal.abort(new Error("enough"))));
  await rejection(within(late.promise, 1, "x"));
  late.reject(new Error("late"));
  await Bun.sleep(1);
});

test("a sleep ends by itself or with the caller's reason", async () => {
  await sleep(1);
  const caller = new AbortController();
  const sleeping = sleep(10_000, caller.signal);
  caller.abort(new Error("up"));
  expect((await rejection(sleeping)).message).toBe("up");
  expect((await rejection(sleep(1, caller.signal))).message).toBe("up");
});
