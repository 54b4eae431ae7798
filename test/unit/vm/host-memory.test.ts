import { expect, test } from "bun:test";
import { hasRoomForSpareClone } from "../../../src/vm/host-memory.ts";

const GIB = 2 ** 30;

test("a spare clone must leave an eighth of the machine's memory free, were it to use all of its own", () => {
  expect(hasRoomForSpareClone(GIB, 3 * GIB, 16 * GIB)).toBe(true);
  expect(hasRoomForSpareClone(GIB, 3 * GIB - 1, 16 * GIB)).toBe(false);
});

test("this machine's own figures are read", () => {
  expect(hasRoomForSpareClone(0)).toBeBoolean();
  expect(hasRoomForSpareClone(2 ** 60)).toBe(false);
});
