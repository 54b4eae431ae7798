/** What to keep; 0 switches a rule off. A snapshot goes when any rule says so. */
export interface GcPolicy {
  older_than_seconds: number;
  keep_last_per_vm: number;
  max_total_bytes: number;
}

export type GcReason = Exclude<keyof GcPolicy, "older_than_seconds"> | "older_than";
/** `source_snapshot`: a VM that was restored from it is there */
export type GcProtection = "referenced_by_diff" | "source_snapshot";

export interface GcItem {
  snapshot_id: string;
  source_vm_id: string;
  snapshot_type: "full" | "diff";
  base_snapshot_id?: string | undefined;
  created_at: string;
  /** On disk */
  size_bytes: number;
  hasVm: boolean;
}

export interface GcPlan {
  /** In the order in which they can be deleted: a diff before its base */
  candidates: { item: GcItem; reasons: GcReason[] }[];
  /** What a rule says should go, and cannot */
  protected: { item: GcItem; reasons: GcReason[]; protections: GcProtection[] }[];
}

/** `items` are the oldest first. */
export function planCollection(items: readonly GcItem[], policy: GcPolicy, nowMs: number): GcPlan {
  const chosen = new Map<GcItem, GcReason[]>();
  const choose = (item: GcItem, reason: GcReason) => {
    chosen.set(item, [...(chosen.get(item) ?? []), reason]);
  };
  for (const item of items) if (isOld(item, policy, nowMs)) choose(item, "older_than");
  for (const item of beyondTheLast(items, policy.keep_last_per_vm)) choose(item, "keep_last_per_vm");
  for (const item of items) {
    if (policy.max_total_bytes === 0 || bytesLeft(items, chosen) <= policy.max_total_bytes) break;
    if (!chosen.has(item)) choose(item, "max_total_bytes");
  }
  return planOf(items, chosen);
}

function isOld(item: GcItem, { older_than_seconds }: GcPolicy, nowMs: number): boolean {
  return older_than_seconds > 0 && nowMs - Date.parse(item.created_at) > older_than_seconds * 1000;
}

function beyondTheLast(items: readonly GcItem[], keep: number): GcItem[] {
  if (keep === 0) return [];
  const byVm = Map.groupBy(items, (item) => item.source_vm_id);
  return [...byVm.values()].flatMap((ofVm) => ofVm.slice(0, Math.max(0, ofVm.length - keep)));
}

function bytesLeft(items: readonly GcItem[], chosen: ReadonlyMap<GcItem, GcReason[]>): number {
  const kept = items.filter((item) => !chosen.has(item) || protectionsOf(item, items, chosen).length > 0);
  return kept.reduce((sum, item) => sum + item.size_bytes, 0);
}

/** A diff has nothing that refers to it but VMs, so this looks no deeper than one diff. */
function protectionsOf(
  item: GcItem,
  items: readonly GcItem[],
  chosen: ReadonlyMap<GcItem, GcReason[]>,
): GcProtection[] {
  const diffs = items.filter(({ base_snapshot_id }) => base_snapshot_id === item.snapshot_id);
  const isReferenced = diffs.some((diff) => diff.hasVm || !chosen.has(diff));
  return [
    ...(isReferenced ? (["referenced_by_diff"] as const) : []),
    ...(item.hasVm ? (["source_snapshot"] as const) : []),
  ];
}

function planOf(items: readonly GcItem[], chosen: ReadonlyMap<GcItem, GcReason[]>): GcPlan {
  const plan: GcPlan = { candidates: [], protected: [] };
  for (const item of [...items.filter(isDiff), ...items.filter((item) => !isDiff(item))]) {
    const reasons = chosen.get(item);
    if (!reasons) continue;
    const protections = protectionsOf(item, items, chosen);
    if (protections.length > 0) plan.protected.push({ item, reasons, protections });
    else plan.candidates.push({ item, reasons });
  }
  return plan;
}

function isDiff(item: GcItem): boolean {
  return item.base_snapshot_id !== undefined;
}
