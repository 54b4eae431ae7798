import { expect, test } from "bun:test";
import { newSessionId } from "../../../src/session/session-id.ts";

test("ids have one form and never repeat", () => {
  const ids = Array.from({ length: 10_000 }, newSessionId);
  expect(ids.filter((id) => !/^ses_[a-z2-7]{26}$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("every character but the last takes all 32 values", () => {
  const ids = Array.from({ length: 2000 }, newSessionId);
  for (let at = 4; at < 29; at++) expect(new Set(ids.map((id) => id[at])).size).toBe(32);
  // 128 bits are 25 characters of 5 bits and 3 bits more.
  expect(new Set(ids.map((id) => id[29])).size).toBe(8);
});
