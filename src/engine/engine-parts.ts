import type { Logger } from "../base/logger.ts";
import type { JsonLines } from "./audit/json-lines.ts";
import type { RuntimeAudit } from "./audit/runtime-audit.ts";
import type { DiskFloor } from "./disk-floor.ts";
import type { VmEgress } from "./egress/vm-egress.ts";
import type { EngineSettings } from "./engine-settings.ts";
import type { Flocks } from "./flocks/flocks.ts";
import type { Forwards } from "./forwards/forwards.ts";
import type { Gate } from "./http/auth.ts";
import type { EngineMetrics } from "./metrics/engine-metrics.ts";
import type { Profiles } from "./profiles/profiles.ts";
import type { Snapshots } from "./snapshots/snapshots.ts";
import type { Tasks } from "./tasks/tasks.ts";
import type { Tenants } from "./tenants/tenants.ts";
import type { VmInfo } from "./vms/vm-info.ts";
import type { VmMeter } from "./vms/vm-stats.ts";
import type { VmTable } from "./vms/vm-table.ts";
import type { WorkPaths } from "./work-directory.ts";

/** What route modules and the parts behind them may use of each other. */
export interface EngineParts {
  settings: EngineSettings;
  log: Logger;
  paths: WorkPaths;
  gate: Gate;
  disk: DiskFloor;
  tenants: Tenants;
  profiles: Profiles;
  vms: VmTable;
  snapshots: Snapshots<VmInfo>;
  tasks: Tasks;
  meter: VmMeter;
  metrics: EngineMetrics;
  egress: VmEgress;
  forwards: Forwards;
  flocks: Flocks;
  audit: RuntimeAudit;
  access: JsonLines;
  /** Of this engine, for clients, without a final slash */
  baseUrl: () => string;
}
