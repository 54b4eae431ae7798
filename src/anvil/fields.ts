/** Arguments that several tools take. */
export const TENANT_ID = {
  type: "string",
  description: "Tenant the call is made for; default: the configured one",
} as const;

export const EGRESS_POLICY = {
  type: "string",
  description: "deny_all, profile or allow_all; default profile",
} as const;

/** The two ways to say which VM. */
export const VM_IDENTITY = {
  vm_id: { type: "string", description: "VM to use; wins over session_name" },
  session_name: { type: "string", description: "Name given to the VM when it was made" },
  tenant_id: TENANT_ID,
} as const;

export const NEW_SESSION_NAME = {
  type: "string",
  description: "Name for the new VM, to use instead of its vm_id; must not be taken",
} as const;

export const SNAPSHOT_ID = {
  type: "string",
  description: "From anvil_create_snapshot or anvil_list_snapshots",
} as const;

export const FLOCK_ID = {
  type: "string",
  description: "From anvil_spawn_flock or anvil_list_flocks",
} as const;

export const FLOCK_TASK = { type: "string", description: "What the flock is to do" } as const;

export const FLOCK_ROLES = {
  type: "array",
  items: { type: "string" },
  description: "One role for each agent, 1 to 20; its VM gets the profile of that name, if there is one",
} as const;
