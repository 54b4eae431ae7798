import { JsonLines } from "../audit/json-lines.ts";
import { type GcItem, type GcPolicy, type GcProtection, type GcReason, planCollection } from "./gc-plan.ts";
import { objectOf, type Snapshot } from "./snapshot-record.ts";

export type GcEntry = Omit<GcItem, "hasVm"> & { reasons: (GcReason | GcProtection)[] };

/** The answer to `POST /snapshots/gc`, and a line of `gc-audit.jsonl`. */
export interface GcReport {
  applied: boolean;
  /** RFC 3339 */
  requested_at: string;
  policy: GcPolicy;
  /** What goes, or would go */
  candidates: GcEntry[];
  /** What a rule would have gone, and does not: the last reasons say why */
  protected: GcEntry[];
  /** Ids */
  deleted: string[];
  errors: { snapshot_id: string; error: string }[];
}

export interface GcParts {
  /** Oldest first */
  snapshots: readonly Snapshot[];
  hasVm(id: string): boolean;
  remove(snapshot: Snapshot): Promise<void>;
  auditPath: string;
}

/** Deletes what a policy says, or only tells. One that cannot be deleted does not keep the others. */
export async function collectSnapshots(parts: GcParts, policy: GcPolicy, apply: boolean): Promise<GcReport> {
  const now = new Date();
  const plan = planCollection(
    parts.snapshots.map((snapshot) => itemOf(snapshot, parts.hasVm(snapshot.id))),
    policy,
    now.getTime(),
  );
  const report: GcReport = {
    applied: apply,
    requested_at: now.toISOString(),
    policy,
    candidates: plan.candidates.map(({ item, reasons }) => entryOf(item, reasons)),
    protected: plan.protected.map(({ item, reasons, protections }) =>
      entryOf(item, [...reasons, ...protections]),
    ),
    deleted: [],
    errors: [],
  };
  if (!apply) return report;
  const byId = new Map(parts.snapshots.map((snapshot) => [snapshot.id, snapshot]));
  for (const { item } of plan.candidates) await removeOne(parts, byId.get(item.snapshot_id)!, report);
  using audit = new JsonLines(parts.auditPath);
  audit.append(report);
  return report;
}

async function removeOne(parts: GcParts, snapshot: Snapshot, report: GcReport): Promise<void> {
  try {
    await parts.remove(snapshot);
    report.deleted.push(snapshot.id);
  } catch (error) {
    report.errors.push({ snapshot_id: snapshot.id, error: (error as Error).message });
  }
}

function itemOf(snapshot: Snapshot, hasVm: boolean): GcItem {
  const { snapshot_id, source_vm_id, snapshot_type, base_snapshot_id, created_at } = objectOf(snapshot);
  const size_bytes = snapshot.diskBytes;
  return { snapshot_id, source_vm_id, snapshot_type, base_snapshot_id, created_at, size_bytes, hasVm };
}

function entryOf({ hasVm: _, ...item }: GcItem, reasons: (GcReason | GcProtection)[]): GcEntry {
  return { ...item, reasons };
}
