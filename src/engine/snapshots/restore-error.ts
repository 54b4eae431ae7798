import { EgressError } from "../../egress/egress-error.ts";
import { AgentError } from "../../guest/agent-error.ts";
import { VmError } from "../../vm/vm-error.ts";
import { diskFull } from "../disk-full.ts";
import { EngineError } from "../engine-error.ts";

/** As of the API this one is compatible with; those of its network and its vsock cannot occur here. */
export type RestoreCode =
  | "invalid_restore_request"
  | "invalid_tenant_id"
  | "invalid_egress_policy"
  | "tenant_mismatch"
  | "egress_policy_mismatch"
  | "snapshot_not_found"
  | "diff_base_missing"
  | "memory_merge_failed"
  | "egress_policy_failed"
  | "firecracker_restore_failed"
  | "guest_reconfigure_failed"
  | "agent_not_ready";

const STATUS: Record<RestoreCode, 400 | 403 | 404 | 409 | 500> = {
  invalid_restore_request: 400,
  invalid_tenant_id: 400,
  invalid_egress_policy: 400,
  tenant_mismatch: 403,
  egress_policy_mismatch: 403,
  snapshot_not_found: 404,
  diff_base_missing: 409,
  memory_merge_failed: 500,
  egress_policy_failed: 500,
  firecracker_restore_failed: 500,
  guest_reconfigure_failed: 500,
  agent_not_ready: 500,
};

/** Answered as `{error, code, source_snapshot_id?}`. */
export function restoreError(
  code: RestoreCode,
  text: string,
  snapshotId?: string,
  cause?: unknown,
): EngineError {
  const source = snapshotId === undefined ? {} : { source_snapshot_id: snapshotId };
  return new EngineError(STATUS[code], code, { error: text, code, ...source }, cause);
}

/** Whatever a restore failed with, in the words of a restore. Refusals for disk and quota keep their status. */
export function restoreFailure(error: unknown, snapshotId: string): EngineError {
  const told = diskFull(error) ?? error;
  if (told instanceof EngineError && isTold(told)) return asRestoreError(told, snapshotId);
  const text = error instanceof Error ? error.message : String(error);
  return restoreError(codeOf(error), text, snapshotId, error);
}

function isTold({ status, code }: EngineError): boolean {
  return status < 500 || [503, 507].includes(status) || code in STATUS;
}

function asRestoreError(error: EngineError, snapshotId: string): EngineError {
  const { status, code, body } = error;
  const fields = typeof body === "string" ? { error: body } : body;
  return new EngineError(status, code, { ...fields, code, source_snapshot_id: snapshotId }, error);
}

function codeOf(error: unknown): RestoreCode {
  let vmErrors = 0;
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof EngineError && cause.code === "prepare_failed") return "guest_reconfigure_failed";
    if (cause instanceof EgressError) return "egress_policy_failed";
    if (cause instanceof AgentError) return "agent_not_ready";
    // What a clone failed with is wrapped once. A second one in it says how QEMU ended, which is why the agent was lost.
    if (cause instanceof VmError && ++vmErrors > 1) break;
  }
  return "firecracker_restore_failed";
}
