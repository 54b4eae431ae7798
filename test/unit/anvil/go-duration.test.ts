import { expect, test } from "bun:test";
import { parseGoDuration } from "../../../src/anvil/go-duration.ts";

test.each([
  ["60s", 60_000],
  ["1h30m", 5_400_000],
  ["1.5s", 1500],
  [".5m", 30_000],
  ["2m0.5s", 120_500],
  ["250ms", 250],
  ["1000us", 1],
  ["0", 0],
  ["-0", 0],
  ["-5s", -5000],
  ["+1s", 1000],
])("%s is %d ms", (text, ms) => {
  expect(parseGoDuration(text)).toBeCloseTo(ms);
});

test.each(["", "60", "s", "1 s", "1s ", "1d", "--1s", "1s2", ".s", "1h-1m"])("%j is no duration", (text) => {
  expect(parseGoDuration(text)).toBeNull();
});
