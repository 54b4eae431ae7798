import { expect, test } from "bun:test";
import fc from "fast-check";
import { ByteTail } from "../../../src/vm/byte-tail.ts";
import { rejection } from "../../support/rejection.ts";

const NEVER = new AbortController().signal;

test("the last bytes are kept, however they came", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 20 })),
      fc.integer({ min: 1, max: 30 }),
      (pieces, limit) => {
        const tail = new ByteTail(limit);
        for (const piece of pieces) tail.push(piece);
        const whole = Buffer.concat(pieces);
        expect(tail.text()).toBe(whole.subarray(Math.max(0, whole.byteLength - limit)).toString("latin1"));
      },
    ),
    { seed: 3, numRuns: 200 },
  );
});

test("a text is seen at once, or when its last byte comes", async () => {
  const tail = new ByteTail(100);
  tail.push(Buffer.from("agent: up\n"));
  await tail.seen("up", NEVER);
  let isSeen = false;
  const seeing = tail.seen("TOOLS_READY", NEVER).then(() => {
    isSeen = true;
  });
  tail.push(Buffer.from("TOOLS_"));
  await Bun.sleep(1);
  expect(isSeen).toBe(false);
  tail.push(Buffer.from("READY"));
  await seeing;
});

test("waiting for a text ends when the caller gives up", async () => {
  const tail = new ByteTail(10);
  const caller = new AbortController();
  const seeing = tail.seen("never", caller.signal);
  caller.abort(new Error("enough"));
  expect((await rejection(seeing)).message).toBe("enough");
  expect((await rejection(tail.seen("never", caller.signal))).message).toBe("enough");
  tail.push(Buffer.from("never"));
});
