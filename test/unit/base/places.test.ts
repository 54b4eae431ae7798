import { expect, test } from "bun:test";
import { Places } from "../../../src/base/places.ts";

const NEVER = new AbortController().signal;

test("there are so many places, and one that is given back is another's", () => {
  const places = new Places(2);
  const [first, second] = [places.take(), places.take()];
  expect(places.take()).toBeNull();
  first![Symbol.dispose]();
  first![Symbol.dispose]();
  expect(places.take()).not.toBeNull();
  expect(places.take()).toBeNull();
  second![Symbol.dispose]();
});

test("who waits is served in order", async () => {
  const places = new Places(1);
  const held = places.take()!;
  const order: string[] = [];
  const wait = async (name: string) => {
    using _place = await places.wait(NEVER);
    order.push(name);
  };
  const all = [wait("a"), wait("b"), wait("c")];
  held[Symbol.dispose]();
  await Promise.all(all);
  expect(order).toEqual(["a", "b", "c"]);
});

test("who gives up waiting takes nobody's place", async () => {
  const places = new Places(1);
  const held = places.take()!;
  const giveUp = new AbortController();
  const first = places.wait(giveUp.signal);
  const second = places.wait(NEVER);
  held[Symbol.dispose]();
  giveUp.abort(new Error("late"));
  await expect(first).rejects.toThrow("late");
  (await second)[Symbol.dispose]();
  await expect(places.wait(giveUp.signal)).rejects.toThrow("late");
  expect(places.take()).not.toBeNull();
});
