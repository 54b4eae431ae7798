/** Everything the adapter's file and environment decide. All paths are absolute. */
export interface AdapterConfig {
  /** File that was read because it lies in the current directory, not because anybody named it */
  foundFilePath: string | null;
  /** http or https, without a slash at its end */
  daemonUrl: string;
  apiToken: string | null;
  /** Limit for a task whose caller gave none, in `ms` */
  defaultTimeoutMs: number;
  /** Null: aliases live as long as the process */
  sessionStorePath: string | null;
  defaultTenantId: string | null;
  /** Null: no runtime audit */
  auditLogPath: string | null;
}
