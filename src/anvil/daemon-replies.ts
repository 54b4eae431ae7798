import * as z from "zod";
import { isResourceId } from "./input-rules.ts";

/** What of the daemon's answers reaches a caller: these fields and no other, above all no agent_token. */

/** Left out, null and "" are all told as left out. */
const optional = z
  .string()
  .nullish()
  .transform((text) => text || undefined);
const resourceId = z.string().refine(isResourceId, "is no id");

export const vmReply = z.object({
  vm_id: resourceId,
  guest_ip: z.string(),
  agent_url: z.string(),
  profile: optional,
  tenant_id: optional,
  egress_policy: optional,
});

export const restoredVmReply = vmReply.extend({ source_snapshot_id: z.string() });

export const snapshotReply = z.object({
  snapshot_id: z.string(),
  source_vm_id: z.string(),
  tenant_id: optional,
  profile: optional,
  egress_policy: optional,
  snapshot_type: z.string(),
  base_snapshot_id: optional,
  created_at: z.string(),
});

const flockAgent = z.object({
  agent_id: z.string(),
  role: z.string(),
  vm_id: z.string(),
  agent_url: z.string(),
  status: z.string(),
});

export const createdFlockReply = z.object({
  flock_id: z.string(),
  task: z.string(),
  tenant_id: optional,
  egress_policy: optional,
  agents: z
    .array(flockAgent)
    .nullable()
    .transform((agents) => agents ?? []),
  townwall_url: z.string(),
  post_url: z.string(),
});

export const flockReply = z.object({
  flock_id: z.string(),
  task: z.string(),
  tenant_id: optional,
  egress_policy: optional,
  agents: z
    .record(z.string(), flockAgent)
    .nullable()
    .transform((agents) => agents ?? {}),
  created_at: z.string(),
});

export const wallMessageReply = z.object({
  timestamp: z.string(),
  agent_id: z.string(),
  body: z.string(),
});
