import { z } from "@hono/zod-openapi";
import type { Tasks } from "../tasks/tasks.ts";
import { egressPolicy } from "../vms/vm-info.ts";
import type { VmTable } from "../vms/vm-table.ts";
import type { FlockRecord, MemberRecord } from "./flock-record.ts";

export const agentInfo = z
  .object({
    agent_id: z.string(),
    role: z.string(),
    profile: z.string().optional(),
    vm_id: z.string(),
    agent_url: z.string(),
    status: z.enum(["spawning", "ready", "busy", "done", "dead", "paused"]),
  })
  .openapi("FlockAgent");
export type AgentInfo = z.infer<typeof agentInfo>;

const common = {
  flock_id: z.string(),
  task: z.string(),
  tenant_id: z.string().optional(),
  egress_policy: egressPolicy.optional(),
};

export const newFlock = z
  .object({ ...common, agents: z.array(agentInfo), townwall_url: z.string(), post_url: z.string() })
  .openapi("NewFlock");

export const flockInfo = z
  .object({
    ...common,
    max_agents: z.int(),
    agents: z.record(z.string(), agentInfo),
    created_at: z.string(),
    paused: z.boolean(),
  })
  .openapi("Flock");

/** Where a member's state is seen. */
export interface FlockView {
  vms: VmTable;
  tasks: Tasks;
  baseUrl: () => string;
  /** Its VM is being made anew */
  isSpawning: (agentId: string) => boolean;
}

/** Without any token. */
export function describeFlock(record: FlockRecord, view: FlockView): z.infer<typeof flockInfo> {
  const { flock_id, task, tenant_id, egress_policy, max_agents, created_at, paused } = record;
  const agents = Object.fromEntries(describeAgents(record, view).map((agent) => [agent.agent_id, agent]));
  return { flock_id, task, tenant_id, egress_policy, max_agents, agents, created_at, paused };
}

export function describeNewFlock(record: FlockRecord, view: FlockView): z.infer<typeof newFlock> {
  const { flock_id, task, tenant_id, egress_policy } = record;
  const url = `${view.baseUrl()}/flocks/${flock_id}`;
  const agents = describeAgents(record, view);
  return {
    flock_id,
    task,
    tenant_id,
    egress_policy,
    agents,
    townwall_url: `${url}/wall`,
    post_url: `${url}/post`,
  };
}

export function describeAgent(member: MemberRecord, view: FlockView): AgentInfo {
  const { agent_id, role, profile, vm_id } = member;
  const agent_url = `${view.baseUrl()}/vms/${vm_id}`;
  return { agent_id, role, profile, vm_id, agent_url, status: statusOf(member, view) };
}

function describeAgents(record: FlockRecord, view: FlockView): AgentInfo[] {
  return Object.values(record.agents).map((member) => describeAgent(member, view));
}

/** A VM that was stopped is done, one that ended otherwise or was deleted is dead. */
function statusOf(
  { agent_id, vm_id }: MemberRecord,
  { vms, tasks, isSpawning }: FlockView,
): AgentInfo["status"] {
  if (isSpawning(agent_id)) return "spawning";
  if (!vms.has(vm_id)) return "dead";
  const { state, paused } = vms.get(vm_id).record;
  if (state === "stopped") return "done";
  if (state !== "running") return "dead";
  if (paused) return "paused";
  return tasks.isBusy(vm_id) ? "busy" : "ready";
}
