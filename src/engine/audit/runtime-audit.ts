import type { Logger } from "../../base/logger.ts";
import type { Tenants } from "../tenants/tenants.ts";
import type { JsonLines, JsonRecord } from "./json-lines.ts";

/** Of one answer, unless another number is asked for */
const DEFAULT_RECORDS = 1000;

/** One operation on the engine. Holds nothing of bodies, tokens or outputs. */
export interface RuntimeRecord {
  /** RFC 3339 */
  timestamp: string;
  tenant_id?: string | undefined;
  vm_id?: string | undefined;
  /** Method and path with names in the place of ids, such as "DELETE /vms/{vm_id}" */
  daemon_operation: string;
  result_code: "success" | "error";
  error?: string | undefined;
}

export interface PrunePolicy {
  /** 0 for all */
  keepLast: number;
  /** 0 for any age, in `s` */
  maxAgeS: number;
}

/** What was done to the engine, and by whose order: `audit/runtime-audit.jsonl`. */
export class RuntimeAudit {
  readonly #lines: JsonLines;
  readonly #tenants: Pick<Tenants, "quotaOf">;
  readonly #log: Logger;
  /** Records that are kept, by tenant */
  readonly #counts = new Map<string, number>();

  private constructor(lines: JsonLines, tenants: Pick<Tenants, "quotaOf">, log: Logger) {
    this.#lines = lines;
    this.#tenants = tenants;
    this.#log = log;
  }

  /** Reads all that is kept once, to know how much that is. */
  static async open(
    lines: JsonLines,
    tenants: Pick<Tenants, "quotaOf" | "measure">,
    log: Logger,
  ): Promise<RuntimeAudit> {
    const audit = new RuntimeAudit(lines, tenants, log);
    for await (const records of lines.newestFirst())
      for (const record of records) audit.#count(record["tenant_id"], 1);
    tenants.measure("retained_audit_records", (tenantId) => audit.#counts.get(tenantId) ?? 0);
    return audit;
  }

  /** One that cannot be written is told in the log; what was done is done. */
  append(record: Omit<RuntimeRecord, "timestamp">): void {
    try {
      this.#lines.append({ timestamp: new Date().toISOString(), ...record });
      this.#count(record.tenant_id, 1);
    } catch (error) {
      this.#log.error({ err: error, ...record }, "an operation could not be written to the audit file");
    }
  }

  /** The newest `limit` of one tenant, or of all, the oldest first; 0 for the newest 1000. */
  read(tenantId: string | undefined, limit: number): Promise<JsonRecord[]> {
    return this.#lines.newest(
      limit || DEFAULT_RECORDS,
      (record) => tenantId === undefined || record["tenant_id"] === tenantId,
    );
  }

  /** Removes what is too old, and all but the newest of all, and of each tenant that has a limit. */
  async prune(policy: PrunePolicy): Promise<void> {
    const removed = new Map<unknown, number>();
    const isKept = this.#ruleOf(policy);
    await this.#lines.rewrite((record) => {
      if (isKept(record)) return true;
      const { tenant_id: tenantId } = record;
      removed.set(tenantId, (removed.get(tenantId) ?? 0) + 1);
      return false;
    });
    for (const [tenantId, count] of removed) this.#count(tenantId, -count);
  }

  /** To be asked of the newest first. */
  #ruleOf({ keepLast, maxAgeS }: PrunePolicy): (record: JsonRecord) => boolean {
    const oldest = maxAgeS > 0 ? Date.now() - maxAgeS * 1000 : Number.NEGATIVE_INFINITY;
    const ofTenant = new Map<unknown, number>();
    let young = 0;
    return ({ timestamp, tenant_id: tenantId }) => {
      if (Date.parse(String(timestamp)) < oldest) return false;
      young += 1;
      if (keepLast > 0 && young > keepLast) return false;
      if (typeof tenantId !== "string") return true;
      const count = (ofTenant.get(tenantId) ?? 0) + 1;
      ofTenant.set(tenantId, count);
      const limit = this.#tenants.quotaOf(tenantId)?.retained_audit_records ?? 0;
      return limit === 0 || count <= limit;
    };
  }

  #count(tenantId: unknown, change: number): void {
    if (typeof tenantId === "string") this.#counts.set(tenantId, (this.#counts.get(tenantId) ?? 0) + change);
  }
}
