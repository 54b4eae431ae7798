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
  const choice = new GcChoice(items);
  for (const item of items) if (isOld(item, policy, nowMs)) choice.add(item, "older_than");
  for (const item of beyondTheLast(items, policy.keep_last_per_vm)) choice.add(item, "keep_last_per_vm");
  for (const item of items) {
    if (policy.max_total_bytes === 0 || choice.bytesLeft <= policy.max_total_bytes) break;
    if (!choice.has(item)) choice.add(item, "max_total_bytes");
  }
  return planOf(items, choice);
}

/** What the rules say should go, and what that leaves. A diff has nothing that refers to it but VMs. */
class GcChoice {
  readonly #reasons = new Map<GcItem, GcReason[]>();
  readonly #byId = new Map<string, GcItem>();
  /** How many diffs of a base stay */
  readonly #diffs = new Map<string, number>();
  /** Of all that stays */
  bytesLeft = 0;

  constructor(items: readonly GcItem[]) {
    for (const item of items) {
      this.#byId.set(item.snapshot_id, item);
      this.bytesLeft += item.size_bytes;
      this.#countDiff(item.base_snapshot_id, 1);
    }
  }

  has(item: GcItem): boolean {
    return this.#reasons.has(item);
  }

  add(item: GcItem, reason: GcReason): void {
    const reasons = this.#reasons.get(item);
    if (reasons) {
      reasons.push(reason);
      return;
    }
    this.#reasons.set(item, [reason]);
    if (!this.#goes(item)) return;
    this.bytesLeft -= item.size_bytes;
    const { base_snapshot_id: baseId } = item;
    if (baseId === undefined) return;
    this.#countDiff(baseId, -1);
    const base = this.#byId.get(baseId);
    // It was to go before, and its last diff held it.
    if (base && this.#goes(base)) this.bytesLeft -= base.size_bytes;
  }

  reasonsFor(item: GcItem): GcReason[] {
    return this.#reasons.get(item) ?? [];
  }

  protectionsOf(item: GcItem): GcProtection[] {
    const isReferenced = (this.#diffs.get(item.snapshot_id) ?? 0) > 0;
    return [
      ...(isReferenced ? (["referenced_by_diff"] as const) : []),
      ...(item.hasVm ? (["source_snapshot"] as const) : []),
    ];
  }

  #goes(item: GcItem): boolean {
    return this.has(item) && this.protectionsOf(item).length === 0;
  }

  #countDiff(baseId: string | undefined, change: number): void {
    if (baseId !== undefined) this.#diffs.set(baseId, (this.#diffs.get(baseId) ?? 0) + change);
  }
}

function isOld(item: GcItem, { older_than_seconds }: GcPolicy, nowMs: number): boolean {
  return older_than_seconds > 0 && nowMs - Date.parse(item.created_at) > older_than_seconds * 1000;
}

function beyondTheLast(items: readonly GcItem[], keep: number): GcItem[] {
  if (keep === 0) return [];
  const byVm = Map.groupBy(items, (item) => item.source_vm_id);
  return [...byVm.values()].flatMap((ofVm) => ofVm.slice(0, Math.max(0, ofVm.length - keep)));
}

function planOf(items: readonly GcItem[], choice: GcChoice): GcPlan {
  const plan: GcPlan = { candidates: [], protected: [] };
  for (const item of [...items.filter(isDiff), ...items.filter((item) => !isDiff(item))]) {
    const reasons = choice.reasonsFor(item);
    if (reasons.length === 0) continue;
    const protections = choice.protectionsOf(item);
    if (protections.length > 0) plan.protected.push({ item, reasons, protections });
    else plan.candidates.push({ item, reasons });
  }
  return plan;
}

function isDiff(item: GcItem): boolean {
  return item.base_snapshot_id !== undefined;
}
