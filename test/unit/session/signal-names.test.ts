import { expect, test } from "bun:test";
import { signalName, signalNumber } from "../../../src/session/signal-names.ts";

test("a signal's number is found by its name, with or without SIG, in any case", () => {
  for (const name of ["TERM", "SIGTERM", "sigterm", "term"]) expect(signalNumber(name)).toBe(15);
  for (let number = 1; number <= 31; number++) expect(signalNumber(signalName(number))).toBe(number);
});

test("what is no name has no number", () => {
  for (const name of ["", "SIG", "9", "TERMINATE", "SIG34"]) expect(signalNumber(name)).toBeNull();
});
