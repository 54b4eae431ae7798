import { expect, test } from "bun:test";
import { LazySessions } from "../../../src/mcp/lazy-sessions.ts";
import { FakeSessions } from "../../contract/fake-sessions.ts";

test("nothing is made before the first call, and then once", async () => {
  let made = 0;
  await using sessions = new LazySessions(async () => {
    made += 1;
    return new FakeSessions();
  });
  expect(made).toBe(0);
  const [first, second] = await Promise.all([sessions.get(), sessions.get()]);
  expect(first).toBe(second);
  expect(made).toBe(1);
});

test("a failure to make them is told, and the next call tries again", async () => {
  let attempts = 0;
  await using sessions = new LazySessions(async () => {
    attempts += 1;
    if (attempts === 1) throw new Error("no image");
    return new FakeSessions();
  });
  await expect(sessions.get()).rejects.toThrow("no image");
  expect(await sessions.get()).toBeInstanceOf(FakeSessions);
});

test("sessions that are still being made at the end are ended too", async () => {
  const { promise, resolve } = Promise.withResolvers<FakeSessions>();
  const lazy = new LazySessions(() => promise);
  const steps: string[] = [];
  const fake = new FakeSessions();
  fake[Symbol.asyncDispose] = async () => void steps.push("disposed");
  const pending = lazy.get();
  const ended = lazy[Symbol.asyncDispose]();
  resolve(fake);
  await Promise.all([pending, ended]);
  expect(steps).toEqual(["disposed"]);
});

test("no call gets through after the end", async () => {
  const lazy = new LazySessions(async () => new FakeSessions());
  await lazy[Symbol.asyncDispose]();
  await expect(lazy.get()).rejects.toMatchObject({ code: "shutting_down" });
});
