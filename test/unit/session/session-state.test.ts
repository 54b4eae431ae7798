import { expect, test } from "bun:test";
import { canBecome, type SessionState } from "../../../src/session/session-state.ts";

const STATES: SessionState[] = ["opening", "ready", "resetting", "closing", "closed", "dead"];

/** Rows: from, columns: to, both in the order above */
const ALLOWED = [
  "-y-y-y", // opening
  "--yy-y", // ready
  "-y-y-y", // resetting
  "----y-", // closing
  "------", // closed
  "------", // dead
];

const pairs = STATES.flatMap((from, row) =>
  STATES.map((to, column) => [from, to, ALLOWED[row]![column] === "y"] as const),
);

test.each(pairs)("%s can become %s: %p", (from, to, allowed) => {
  expect(canBecome(from, to)).toBe(allowed);
});
