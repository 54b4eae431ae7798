import { auditedText } from "../../base/audited-text.ts";
import type { RuntimeAudit } from "./runtime-audit.ts";

export interface AuditedOperation {
  operation: string;
  tenantId?: string | undefined;
  vmId?: string | undefined;
}

/** What `work` may say as it learns it. */
interface Told {
  vmId?: string | undefined;
  tenantId?: string | undefined;
  /** It was done, and failed: a sentence that holds nothing a guest wrote */
  failure?: string;
}

/** Does `work` and records how it went. What `work` writes into `told` is recorded too. */
export async function auditedOperation<T>(
  audit: RuntimeAudit,
  { operation, tenantId, vmId }: AuditedOperation,
  work: (told: Told) => Promise<T>,
): Promise<T> {
  const told: Told = { vmId, tenantId };
  const record = (result_code: "success" | "error", error?: string) =>
    audit.append({
      tenant_id: told.tenantId,
      vm_id: told.vmId,
      daemon_operation: operation,
      result_code,
      error,
    });
  try {
    const result = await work(told);
    if (told.failure === undefined) record("success");
    else record("error", told.failure);
    return result;
  } catch (error) {
    record("error", auditedText((error as Error).message));
    throw error;
  }
}
