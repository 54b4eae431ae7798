import * as z from "zod";
import type { Logger } from "../../base/logger.ts";
import { isTenantId } from "../../base/tenant-id.ts";
import { jsonError } from "../engine-error.ts";
import { readJsonFile, writeJsonFile } from "../json-file.ts";

export const RESOURCES = [
  "active_vms",
  "snapshot_count",
  "snapshot_bytes",
  "concurrent_tasks",
  "retained_audit_records",
] as const;
export type Resource = (typeof RESOURCES)[number];

const amount = z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0);
/** 0 is unlimited */
export const quotaSchema = z.object({
  active_vms: amount,
  snapshot_count: amount,
  snapshot_bytes: amount,
  concurrent_tasks: amount,
  retained_audit_records: amount,
});
export type Quota = z.infer<typeof quotaSchema>;

const tenantsFile = z.object({
  schema_version: z.literal(1),
  tenants: z.record(z.string().refine(isTenantId), z.object({ quota: quotaSchema })),
});

export interface TenantRecord {
  tenant_id: string;
  quota: Quota;
  /** Counted now, in the quota's terms */
  usage: Quota;
}

const UNLIMITED: Quota = quotaSchema.parse({});

/** The tenants with a quota, and the one place where quotas are enforced. */
export class Tenants {
  readonly #path: string;
  readonly #quotas: Map<string, Quota>;
  readonly #meters = new Map<Resource, (tenantId: string) => number>();
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, quotas: Map<string, Quota>) {
    this.#path = path;
    this.#quotas = quotas;
  }

  static async open(path: string, log: Logger): Promise<Tenants> {
    const file = await readJsonFile(path, tenantsFile, log);
    return new Tenants(
      path,
      new Map(Object.entries(file?.tenants ?? {}).map(([id, { quota }]) => [id, quota])),
    );
  }

  /** Says how much of a resource a tenant uses; what is being made counts. */
  measure(resource: Resource, usage: (tenantId: string) => number): void {
    this.#meters.set(resource, usage);
  }

  /**
   * Throws 403 `quota_exceeded` when `requested` more is more than the tenant may have. The caller must make its use
   * count before it awaits anything, or two at once pass.
   */
  admit(tenantId: string | undefined, resource: Resource, requested = 1): void {
    if (tenantId === undefined) return;
    const limit = this.#quotas.get(tenantId)?.[resource] ?? 0;
    const used = this.#usageOf(tenantId, resource);
    if (limit === 0 || used + requested <= limit) return;
    throw jsonError(403, "quota_exceeded", "quota_exceeded", { resource, limit, used, requested });
  }

  /** Null for one without a quota. */
  quotaOf(tenantId: string): Quota | null {
    return this.#quotas.get(tenantId) ?? null;
  }

  list(): TenantRecord[] {
    return [...this.#quotas.keys()].sort().map((tenantId) => this.#describe(tenantId));
  }

  /** Null for a tenant that nobody gave a quota. */
  get(tenantId: string): TenantRecord | null {
    return this.#quotas.has(tenantId) ? this.#describe(tenantId) : null;
  }

  /** On disk when it resolves. */
  async put(tenantId: string, quota: Quota): Promise<TenantRecord> {
    const saved = this.#saving.then(async () => {
      const quotas = new Map(this.#quotas).set(tenantId, quota);
      await writeJsonFile(this.#path, contentOf(quotas));
      // Not before: what holds now must hold after a restart.
      this.#quotas.set(tenantId, quota);
    });
    this.#saving = saved.catch(() => undefined);
    await saved;
    return this.#describe(tenantId);
  }

  #describe(tenantId: string): TenantRecord {
    const usage = Object.fromEntries(RESOURCES.map((name) => [name, this.#usageOf(tenantId, name)]));
    return {
      tenant_id: tenantId,
      quota: this.#quotas.get(tenantId) ?? UNLIMITED,
      usage: usage as Quota,
    };
  }

  #usageOf(tenantId: string, resource: Resource): number {
    return this.#meters.get(resource)?.(tenantId) ?? 0;
  }
}

function contentOf(quotas: ReadonlyMap<string, Quota>): z.infer<typeof tenantsFile> {
  const tenants = Object.fromEntries([...quotas].map(([id, quota]) => [id, { quota }]));
  return { schema_version: 1, tenants };
}
