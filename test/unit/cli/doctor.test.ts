import { expect, test } from "bun:test";
import { Fault } from "../../../src/base/fault.ts";
import { type Check, runDoctor } from "../../../src/cli/doctor.ts";
import { CapturedOutput } from "./captured-output.ts";

class MissingFault extends Fault<"missing"> {}

const SOUND: Check = { id: "qemu", look: () => ({ status: "ok", what: "QEMU 10.0.2" }) };
const SLOW: Check = { id: "acceleration", look: async () => ({ status: "warn", what: "slow; do this" }) };
const BROKEN: Check = {
  id: "image",
  look: () => Promise.reject(new MissingFault("missing", "no image. Build it.")),
};

test("findings are a table for people, in the order of the checks", async () => {
  const output = new CapturedOutput();
  expect(await runDoctor([SOUND, SLOW], false, output)).toBe(0);
  expect(output.stdoutText).toBe("ok    qemu          QEMU 10.0.2\nwarn  acceleration  slow; do this\n");
});

test("a fault is a failed check, and one failed check ends it with 1", async () => {
  const output = new CapturedOutput();
  expect(await runDoctor([SOUND, BROKEN], true, output)).toBe(1);
  expect(JSON.parse(output.stdoutText)).toEqual([
    { id: "qemu", status: "ok", what: "QEMU 10.0.2" },
    { id: "image", status: "fail", what: "no image. Build it." },
  ]);
});

test("a bug in a check is not taken for a finding", async () => {
  const bug: Check = { id: "x", look: () => Promise.reject(new TypeError("boom")) };
  await expect(runDoctor([bug], true, new CapturedOutput())).rejects.toThrow("boom");
});
