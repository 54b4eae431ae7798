import { expect, test } from "bun:test";
import fc from "fast-check";
import { ByteQueue } from "../../../src/egress/byte-queue.ts";

test("what was added is taken in its order, and what was taken stays as it was", () => {
  const steps = fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.nat(50)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const queue = new ByteQueue();
      let model: Buffer = Buffer.alloc(0);
      const taken: { view: Uint8Array; copy: Buffer }[] = [];
      for (const step of all) {
        if (typeof step === "number") {
          const view = queue.take(step);
          taken.push({ view, copy: model.subarray(0, step) });
          model = model.subarray(step);
        } else {
          queue.add(step);
          model = Buffer.concat([model, step]);
        }
        expect(model.equals(queue.bytes)).toBe(true);
      }
      for (const { view, copy } of taken) expect(copy.equals(view)).toBe(true);
    }),
  );
});

test("pieces that were added are not written to", () => {
  const queue = new ByteQueue();
  const pieces = [Buffer.alloc(10, 1).subarray(0, 5), Buffer.alloc(5, 2), Buffer.alloc(5, 3)];
  for (const piece of pieces) queue.add(piece);
  expect(pieces.map((piece) => piece[0])).toEqual([1, 2, 3]);
  expect(new Uint8Array(pieces[0]!.buffer, pieces[0]!.byteOffset, 10)).toEqual(new Uint8Array(10).fill(1));
});

test("a million small pieces are joined in proportion to their bytes", () => {
  const queue = new ByteQueue();
  for (let at = 0; at < 1_000_000; at++) queue.add(Uint8Array.of(at & 0xff));
  expect(queue.bytes.byteLength).toBe(1_000_000);
  queue.clear();
  expect(queue.bytes.byteLength).toBe(0);
});
