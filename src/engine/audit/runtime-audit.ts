import type { Logger } from "../../base/logger.ts";
import type { JsonLines } from "./json-lines.ts";

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
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #keepLastOf: (tenantId: string) => number;

  /** `keepLastOf`: how many records a tenant retains; 0 for all */
  constructor(
    lines: JsonLines,
    keepLastOf: (tenantId: string) => number,
    log: Logger,
    now: () => number = Date.now,
  ) {
    this.#lines = lines;
    this.#log = log;
    this.#keepLastOf = keepLastOf;
    this.#now = now;
  }

  /** One that cannot be written is told in the log; what was done is done. */
  append(record: Omit<RuntimeRecord, "timestamp">): void {
    try {
      this.#lines.append({ timestamp: new Date(this.#now()).toISOString(), ...record });
    } catch (error) {
      this.#log.error({ err: error, ...record }, "an operation could not be written to the audit file");
    }
  }

  /** The newest `limit` of one tenant, or of all, the oldest first; 0 for all of them. */
  async read(tenantId: string | undefined, limit: number): Promise<Record<string, unknown>[]> {
    const records = (await this.#lines.read()).filter(
      (record) => tenantId === undefined || record["tenant_id"] === tenantId,
    );
    return limit > 0 ? records.slice(-limit) : records;
  }

  /** Removes what is too old, and all but the newest of each tenant that has a limit; returns what is left. */
  prune({ keepLast, maxAgeS }: PrunePolicy): Record<string, unknown>[] {
    const oldest = maxAgeS > 0 ? this.#now() - maxAgeS * 1000 : Number.NEGATIVE_INFINITY;
    return this.#lines.rewrite((records) => {
      const young = records.filter((record) => !(Date.parse(String(record["timestamp"])) < oldest));
      return this.#withinTenantLimits(keepLast > 0 ? young.slice(-keepLast) : young);
    });
  }

  #withinTenantLimits(records: Record<string, unknown>[]): Record<string, unknown>[] {
    const counts = new Map<string, number>();
    const newestFirst = records.toReversed().filter(({ tenant_id: tenantId }) => {
      if (typeof tenantId !== "string") return true;
      const count = (counts.get(tenantId) ?? 0) + 1;
      counts.set(tenantId, count);
      const limit = this.#keepLastOf(tenantId);
      return limit === 0 || count <= limit;
    });
    return newestFirst.toReversed();
  }
}
