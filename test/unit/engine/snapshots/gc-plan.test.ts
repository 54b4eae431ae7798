import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type GcItem, type GcPolicy, planCollection } from "../../../../src/engine/snapshots/gc-plan.ts";

const NOW = Date.parse("2026-06-01T00:00:00Z");
const OFF: GcPolicy = { older_than_seconds: 0, keep_last_per_vm: 0, max_total_bytes: 0 };

/** `f1` is a full one, `d2<f1` a diff of it; one second apart, the last one a second old. */
function itemsOf(...names: string[]): GcItem[] {
  return names.map((name, index) => {
    const [id, base] = name.split("<") as [string, string?];
    return {
      snapshot_id: id,
      source_vm_id: id.includes("b") ? "vm-b" : "vm-a",
      snapshot_type: base ? "diff" : "full",
      base_snapshot_id: base,
      created_at: new Date(NOW - (names.length - index) * 1000).toISOString(),
      size_bytes: base ? 1 : 10,
      hasVm: id.endsWith("*"),
    };
  });
}

function planned(items: GcItem[], policy: Partial<GcPolicy>) {
  const plan = planCollection(items, { ...OFF, ...policy }, NOW);
  return {
    go: plan.candidates.map(({ item, reasons }) => `${item.snapshot_id} ${reasons}`),
    stay: plan.protected.map(({ item, protections }) => `${item.snapshot_id} ${protections}`),
  };
}

describe("a collection", () => {
  test("without a rule takes nothing", () => {
    expect(planned(itemsOf("f1", "d2<f1"), {})).toEqual({ go: [], stay: [] });
  });

  test("takes what is older than a time", () => {
    expect(planned(itemsOf("f1", "f2", "f3"), { older_than_seconds: 2 })).toEqual({
      go: ["f1 older_than"],
      stay: [],
    });
  });

  test("keeps the last of each VM", () => {
    expect(planned(itemsOf("f1", "fb2", "f3", "fb4", "f5"), { keep_last_per_vm: 1 }).go).toEqual([
      "f1 keep_last_per_vm",
      "fb2 keep_last_per_vm",
      "f3 keep_last_per_vm",
    ]);
  });

  test("takes the oldest until the rest fits", () => {
    expect(planned(itemsOf("f1", "f2", "f3"), { max_total_bytes: 10 }).go).toEqual([
      "f1 max_total_bytes",
      "f2 max_total_bytes",
    ]);
    expect(planned(itemsOf("f1", "f2", "f3"), { max_total_bytes: 30 }).go).toEqual([]);
  });

  test("keeps the base of a diff that stays, and takes both when both go, the diff first", () => {
    expect(planned(itemsOf("f1", "f2", "d3<f1"), { keep_last_per_vm: 1 })).toEqual({
      go: ["f2 keep_last_per_vm"],
      stay: ["f1 referenced_by_diff"],
    });
    expect(planned(itemsOf("f1", "d2<f1"), { older_than_seconds: 1, max_total_bytes: 11 }).stay).toEqual([
      "f1 referenced_by_diff",
    ]);
    expect(planned(itemsOf("f1", "d2<f1", "f3"), { max_total_bytes: 10 }).go).toEqual([
      "d2 max_total_bytes",
      "f1 max_total_bytes",
    ]);
  });

  test("keeps what a VM was restored from, and with a diff its base", () => {
    expect(planned(itemsOf("f1*", "f2"), { keep_last_per_vm: 1 }).stay).toEqual(["f1* source_snapshot"]);
    expect(planned(itemsOf("f1", "d2*<f1", "f3"), { keep_last_per_vm: 1 }).stay).toEqual([
      "d2* source_snapshot",
      "f1 referenced_by_diff",
    ]);
  });

  const anything = fc
    .array(fc.record({ diff: fc.boolean(), vm: fc.boolean(), inUse: fc.boolean(), base: fc.nat() }), {
      maxLength: 12,
    })
    .map((parts) => {
      const names: string[] = [];
      const fulls: string[] = [];
      for (const [index, { diff, vm, inUse, base }] of parts.entries()) {
        const isDiff = diff && fulls.length > 0;
        const name = `${isDiff ? "d" : "f"}${vm ? "b" : ""}${index}${inUse ? "*" : ""}`;
        names.push(isDiff ? `${name}<${fulls[base % fulls.length]}` : name);
        if (!isDiff) fulls.push(name);
      }
      return itemsOf(...names);
    });

  test("by bytes takes what adding up anew after each choice would", () => {
    fc.assert(
      fc.property(anything, fc.integer({ min: 1, max: 120 }), (items, max_total_bytes) => {
        const chosen = new Set<GcItem>();
        const stays = (item: GcItem): boolean =>
          !chosen.has(item) ||
          item.hasVm ||
          items.some((diff) => diff.base_snapshot_id === item.snapshot_id && stays(diff));
        for (const item of items) {
          const bytes = items.filter(stays).reduce((sum, { size_bytes }) => sum + size_bytes, 0);
          if (bytes <= max_total_bytes) break;
          chosen.add(item);
        }
        const plan = planCollection(items, { ...OFF, max_total_bytes }, NOW);
        const ids = (of: Iterable<{ snapshot_id: string }>) => [...of].map((each) => each.snapshot_id).sort();
        expect(ids(plan.candidates.map(({ item }) => item))).toEqual(
          ids([...chosen].filter((item) => !stays(item))),
        );
        expect(ids(plan.protected.map(({ item }) => item))).toEqual(ids([...chosen].filter(stays)));
      }),
    );
  });

  test("looks at each of many snapshots a few times only", () => {
    const items = itemsOf("f0", ...Array.from({ length: 4999 }, (_, at) => `d${at}<f0`));
    let looks = 0;
    for (const item of items) {
      const base = item.base_snapshot_id;
      Object.defineProperty(item, "base_snapshot_id", {
        get: () => {
          looks += 1;
          return base;
        },
      });
    }
    expect(planned(items, { max_total_bytes: 100 }).go).toHaveLength(4909);
    expect(looks).toBeLessThan(20 * items.length);
  });

  test("never takes what something that stays stands on, in no order that would break it", () => {
    const policies = fc.record({
      older_than_seconds: fc.nat(13),
      keep_last_per_vm: fc.nat(5),
      max_total_bytes: fc.nat(120),
    });
    fc.assert(
      fc.property(anything, policies, (items, policy) => {
        const { candidates } = planCollection(items, policy, NOW);
        const left = new Set(items);
        for (const { item } of candidates) {
          expect(item.hasVm).toBe(false);
          expect([...left].filter((other) => other.base_snapshot_id === item.snapshot_id)).toEqual([]);
          left.delete(item);
        }
      }),
    );
  });
});
