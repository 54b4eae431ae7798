import { expect, test } from "bun:test";
import fc from "fast-check";
import { ByteCollector } from "../../../src/guest/byte-collector.ts";

test("what was added comes back in order, and belongs to the collector", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 30 }), (parts) => {
      const collector = new ByteCollector();
      const whole = Buffer.concat(parts);
      for (const part of parts) {
        collector.add(part);
        part.fill(0);
      }
      expect(collector.byteLength).toBe(whole.byteLength);
      expect(whole.equals(collector.take())).toBe(true);
    }),
    { seed: 1, numRuns: 100 },
  );
});
