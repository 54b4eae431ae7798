import type { PortableObject, PortableSchema } from "../mcp/portable-schema.ts";

const TEXT = { type: "string" } as const;

/** Schema of a result: `required` members, and others that may be missing. */
export function resultOf(
  required: Readonly<Record<string, PortableSchema>>,
  optional: Readonly<Record<string, PortableSchema>> = {},
): PortableObject {
  return { type: "object", properties: { ...required, ...optional }, required: Object.keys(required) };
}

/** The daemon's answer, passed on as it came. */
export const RAW_OUTPUT = resultOf({
  status_code: { type: "integer" },
  body: { type: "string", description: "The daemon's body as it came" },
});

const OWNERSHIP = { profile: TEXT, tenant_id: TEXT, egress_policy: TEXT } as const;
const VM = { vm_id: TEXT, guest_ip: TEXT, agent_url: TEXT } as const;

export const VM_OUTPUT = resultOf(VM, { ...OWNERSHIP, session_name: TEXT });

export const RESTORED_VM_OUTPUT = resultOf(
  { ...VM, source_snapshot_id: TEXT },
  { ...OWNERSHIP, session_name: TEXT },
);

export const SNAPSHOT_OUTPUT = resultOf(
  { snapshot_id: TEXT, source_vm_id: TEXT, snapshot_type: TEXT, created_at: TEXT },
  { ...OWNERSHIP, base_snapshot_id: TEXT },
);

const AGENT = { agent_id: TEXT, role: TEXT, vm_id: TEXT, agent_url: TEXT, status: TEXT } as const;
const FLOCK_OWNERSHIP = { tenant_id: TEXT, egress_policy: TEXT } as const;

export const CREATED_FLOCK_OUTPUT = resultOf(
  {
    flock_id: TEXT,
    task: TEXT,
    agents: { type: "array", items: resultOf(AGENT) },
    townwall_url: TEXT,
    post_url: TEXT,
  },
  FLOCK_OWNERSHIP,
);

export const FLOCK_OUTPUT = resultOf(
  {
    flock_id: TEXT,
    task: TEXT,
    agents: {
      type: "object",
      properties: {},
      description: "By agent_id: agent_id, role, vm_id, agent_url, status",
    },
    created_at: TEXT,
  },
  FLOCK_OWNERSHIP,
);

export const ROUTED_FLOCK_OUTPUT = resultOf(
  {
    flock_id: TEXT,
    task: TEXT,
    mode: TEXT,
    status: TEXT,
    town_wall_enabled: { type: "boolean" },
    agents: { type: "array", items: resultOf({ ...AGENT, host: TEXT }) },
  },
  FLOCK_OWNERSHIP,
);

export const REPLICATION_OUTPUT = resultOf({
  snapshot_id: TEXT,
  source_host: TEXT,
  target_host: TEXT,
  status: { type: "string", description: "replicated, partial or failed" },
  replicated: { type: "array", items: TEXT },
  skipped: { type: "array", items: TEXT },
  errors: { type: "array", items: TEXT },
});

export const WALL_MESSAGE_OUTPUT = resultOf({ timestamp: TEXT, agent_id: TEXT, body: TEXT });

export function listOf(name: string, item: PortableObject): PortableObject {
  return resultOf({ [name]: { type: "array", items: item } });
}
