/** A machine with an engine. */
export interface Host {
  name: string;
  /** http or https, without a slash at its end */
  endpoint: string;
}

/** Everything the adapter's file and environment decide. All paths are absolute. */
export interface AdapterConfig {
  /** File that was read because it lies in the current directory, not because anybody named it */
  foundFilePath: string | null;
  /** Of one, as long as nothing places VMs on several */
  hosts: readonly [Host];
  /** The same for every host */
  apiToken: string | null;
  /** Limit for a task whose caller gave none, in `ms` */
  defaultTimeoutMs: number;
  /** Null: aliases live as long as the process */
  sessionStorePath: string | null;
  defaultTenantId: string | null;
  /** Null: no runtime audit */
  auditLogPath: string | null;
}
