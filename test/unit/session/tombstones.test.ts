import { expect, test } from "bun:test";
import { Tombstones } from "../../../src/session/tombstones.ts";

test("the first cause of an end stands", () => {
  const tombstones = new Tombstones();
  tombstones.bury("ses_a", "its VMM was killed (SIGKILL)");
  tombstones.bury("ses_a", "it was closed");
  expect(tombstones.causeOf("ses_a")).toBe("its VMM was killed (SIGKILL)");
  expect(tombstones.causeOf("ses_b")).toBeNull();
});

test("only so many are kept, and the oldest goes first", () => {
  const tombstones = new Tombstones();
  for (let number = 0; number < 1030; number++) tombstones.bury(`ses_${number}`, "it was closed");
  expect(tombstones.causeOf("ses_5")).toBeNull();
  expect(tombstones.causeOf("ses_6")).toBe("it was closed");
  expect(tombstones.causeOf("ses_1029")).toBe("it was closed");
});

test("a cause that quotes too much is cut", () => {
  const tombstones = new Tombstones();
  tombstones.bury("ses_a", "x".repeat(1001));
  expect(tombstones.causeOf("ses_a")).toBe(`${"x".repeat(1000)}…`);
});
