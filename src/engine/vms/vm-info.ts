import { z } from "@hono/zod-openapi";
import type { EngineVm } from "./engine-vm.ts";

export const EGRESS_POLICY_RULE = "egress_policy must be empty, deny_all, profile, or allow_all";
export const egressPolicy = z.enum(["deny_all", "profile", "allow_all"]);

/** A VM as clients see it. */
export const vmInfo = z
  .object({
    vm_id: z.string(),
    guest_ip: z.string(),
    agent_url: z.string(),
    profile: z.string().optional(),
    tenant_id: z.string().optional(),
    egress_policy: egressPolicy.optional(),
    source_snapshot_id: z.string().optional(),
    flock_id: z.string().optional(),
    agent_id: z.string().optional(),
    status: z.enum(["running", "paused", "stopped", "dead"]),
    cause: z.string().optional(),
    created_at: z.string(),
  })
  .openapi("VmInfo");
export type VmInfo = z.infer<typeof vmInfo>;

/** Without the agent's token, which only the answer to its creation holds. */
export function describeVm(vm: EngineVm, baseUrl: string): VmInfo {
  const { record } = vm;
  const info: VmInfo = {
    vm_id: record.vm_id,
    guest_ip: record.guest_ip,
    agent_url: `${baseUrl}/vms/${record.vm_id}`,
    profile: record.profile,
    tenant_id: record.tenant_id,
    egress_policy: record.egress_policy,
    source_snapshot_id: record.source_snapshot_id,
    flock_id: record.flock_id,
    agent_id: record.agent_id,
    status: statusOf(vm),
    cause: record.cause,
    created_at: record.created_at,
  };
  return info;
}

function statusOf({ record }: EngineVm): VmInfo["status"] {
  if (record.state === "running") return record.paused ? "paused" : "running";
  return record.state === "stopped" ? "stopped" : "dead";
}
