import { expect, test } from "bun:test";
import { FuzzFailure, type FuzzTarget, fuzz, repeat } from "./fuzz-target.ts";
import { TARGETS } from "./targets.ts";

const SEED = Number(process.env["IGN_TEST_SEED"] ?? 8);

test.each(TARGETS.map((target) => [target.name, target] as const))(
  "%s takes any bytes or refuses them as it should",
  async (_, target) => {
    await fuzz(target, SEED);
  },
);

test("a failure is found and repeated by the seed it names", async () => {
  const target: FuzzTarget = {
    name: "broken",
    corpusPath: "corpus/lines",
    words: [],
    tries: 10_000,
    check(bytes) {
      if (bytes.includes(0x80)) throw new Error("it does not like this byte");
    },
  };
  const failure = await fuzz(target, SEED).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(FuzzFailure);
  const { message } = failure as FuzzFailure;
  const seed = Number(/--repro (\d+)/.exec(message)?.[1]);
  await expect(repeat(target, seed)).rejects.toThrow(message);
});
