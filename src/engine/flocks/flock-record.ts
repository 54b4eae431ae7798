import * as z from "zod";

/** One member. Whether it is ready, busy or dead is seen from its VM, not written. */
export const memberRecord = z.object({
  agent_id: z.string(),
  role: z.string(),
  /** As the VM was made with; left out for the default one */
  profile: z.string().optional(),
  vm_id: z.string(),
});
export type MemberRecord = z.infer<typeof memberRecord>;

/** `flocks/<flock_id>/metadata.json` */
export const flockRecord = z.object({
  schema_version: z.literal(1),
  flock_id: z.string(),
  /** `creating`: nobody was told of it yet. `deleting`: somebody was told that it goes */
  state: z.enum(["creating", "ready", "deleting"]),
  task: z.string(),
  tenant_id: z.string().optional(),
  egress_policy: z.enum(["deny_all", "profile", "allow_all"]).optional(),
  max_agents: z.int().positive(),
  paused: z.boolean(),
  /** By agent_id */
  agents: z.record(z.string(), memberRecord),
  /** The last number given out for each role, so that no member gets the name of one that was removed */
  numbers: z.array(z.object({ role: z.string(), last: z.int().positive() })),
  /** RFC 3339 */
  created_at: z.string(),
});
export type FlockRecord = z.infer<typeof flockRecord>;

/** Ids of this engine's own flocks; those that others place members of have other names. */
export const FLOCK_ID = /^flock-\d{19}$/;

/** `<role>-<n>`, one that was never given out in this flock, and the numbers with it. */
export function nextAgentId(
  numbers: FlockRecord["numbers"],
  role: string,
): { agentId: string; numbers: FlockRecord["numbers"] } {
  const last = (numbers.find((entry) => entry.role === role)?.last ?? 0) + 1;
  const others = numbers.filter((entry) => entry.role !== role);
  return { agentId: `${role}-${last}`, numbers: [...others, { role, last }] };
}
