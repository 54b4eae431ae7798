/** Each key of the file: the variable that overrides it, and words for help. */
export const SETTINGS = {
  daemon_url: {
    variable: "ANVIL_DAEMON_URL",
    meaning: "Base URL of the daemon, http or https",
    fallback: "http://127.0.0.1:3000",
  },
  api_token: { variable: "ANVIL_API_TOKEN", meaning: "Bearer token for the daemon", fallback: "none" },
  default_timeout_seconds: {
    variable: "ANVIL_MCP_DEFAULT_TIMEOUT",
    meaning: "Seconds a task may take when its caller gives none, at most 86400",
    fallback: "300",
  },
  session_store_path: {
    variable: "ANVIL_MCP_SESSION_STORE",
    meaning: "JSON file that keeps session names; one process may use it",
    fallback: "none: names end with the adapter",
  },
  default_tenant_id: {
    variable: "ANVIL_MCP_TENANT_ID",
    meaning: "Tenant of calls that name none",
    fallback: "none",
  },
  audit_log_path: {
    variable: "ANVIL_MCP_AUDIT_LOG",
    meaning: "JSONL file that gets one record for each call; calls then need a tenant",
    fallback: "none",
  },
  scheduler_state_path: {
    variable: "ANVIL_MCP_SCHEDULER_STATE",
    meaning: "State of a router over several hosts; refused in this version",
    fallback: "none",
  },
  scheduler_hosts_file: {
    variable: "ANVIL_MCP_SCHEDULER_HOSTS_FILE",
    meaning: "Hosts of a router; refused in this version",
    fallback: "none",
  },
  scheduler_quota_store_path: {
    variable: "ANVIL_MCP_SCHEDULER_QUOTA_STORE",
    meaning: "Quotas of a router; without a router it has no effect",
    fallback: "none",
  },
  cross_host_flock_create_mode: {
    variable: "ANVIL_MCP_CROSS_HOST_FLOCK_CREATE",
    meaning: "Empty or members_only, which needs a router",
    fallback: "empty",
  },
  reconcile_interval: {
    variable: "ANVIL_MCP_RECONCILE_INTERVAL",
    meaning: "How often a router looks after its hosts, such as 60s; 0 for never",
    fallback: "60s",
  },
} as const;

export type SettingName = keyof typeof SETTINGS;

export const CONFIG_VARIABLE = "ANVIL_MCP_CONFIG";

/** A setting's text and where it was given, for error messages. */
export interface Setting {
  text: string;
  origin: string;
}

export type Settings = Partial<Record<SettingName, Setting>>;

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
