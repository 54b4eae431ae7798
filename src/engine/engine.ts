import { join } from "node:path";
import type { Logger } from "../base/logger.ts";
import { baseUrlOf } from "../config/listen-address.ts";
import { mountAuditRoutes } from "./audit/audit-routes.ts";
import { JsonLines } from "./audit/json-lines.ts";
import { RuntimeAudit } from "./audit/runtime-audit.ts";
import { DiskFloor } from "./disk-floor.ts";
import { VmEgress } from "./egress/vm-egress.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { EngineSettings } from "./engine-settings.ts";
import { mountFlockRoutes } from "./flocks/flock-routes.ts";
import { Flocks } from "./flocks/flocks.ts";
import { answerGuest } from "./flocks/guest-door.ts";
import { mountForwardRoutes } from "./forwards/forward-routes.ts";
import { Forwards } from "./forwards/forwards.ts";
import { createApp } from "./http/app.ts";
import { Gate } from "./http/auth.ts";
import { mountDocumentRoute } from "./http/document.ts";
import type { EngineApp } from "./http/engine-app.ts";
import { mountHealthRoutes } from "./http/health-routes.ts";
import type { TokenList } from "./http/token-list.ts";
import { EngineMetrics } from "./metrics/engine-metrics.ts";
import { mountMetricsRoutes } from "./metrics/metrics-routes.ts";
import { Profiles } from "./profiles/profiles.ts";
import { EngineVms } from "./snapshots/engine-vms.ts";
import { mountSnapshots } from "./snapshots/mount-snapshots.ts";
import { Snapshots } from "./snapshots/snapshots.ts";
import { mountTaskRoutes } from "./tasks/task-routes.ts";
import { Tasks } from "./tasks/tasks.ts";
import { mountTenantRoutes } from "./tenants/tenant-routes.ts";
import { Tenants } from "./tenants/tenants.ts";
import type { Machines } from "./vms/machine.ts";
import { mountVmRoutes } from "./vms/vm-routes.ts";
import { mountVmStateRoutes } from "./vms/vm-state-routes.ts";
import { VmMeter } from "./vms/vm-stats.ts";
import { VmTable } from "./vms/vm-table.ts";
import { openWorkDirectory, workPaths } from "./work-directory.ts";
import { mountWorkloadRoutes } from "./workloads/workload-routes.ts";
import { mountWorkspaceRoutes } from "./workspace/workspace-routes.ts";

/** Of `access.jsonl`, before it is set aside as `.1` */
const ACCESS_LOG_BYTES = 16 * 1_048_576;

/** Where what the engine stands on comes from. */
export interface EngineGround {
  machines: Machines;
  tokens: TokenList;
  log: Logger;
}

/** The control plane without its listener: everything built once, VMs of an earlier engine taken over. */
export class Engine {
  readonly parts: EngineParts;
  readonly app: EngineApp;
  readonly #lock: AsyncDisposable;

  private constructor(parts: EngineParts, app: EngineApp, lock: AsyncDisposable) {
    this.parts = parts;
    this.app = app;
    this.#lock = lock;
  }

  /** Rejects when another engine has the work directory. */
  static async open(settings: EngineSettings, ground: EngineGround): Promise<Engine> {
    const lock = await openWorkDirectory(workPaths(settings.workDir));
    try {
      const parts = await buildParts(settings, ground);
      await parts.vms.adopt(new AbortController().signal);
      await parts.forwards.restore(parts.vms.list());
      await parts.flocks.recover();
      const app = createApp(parts, [
        (app) => mountHealthRoutes(app, parts, () => parts.snapshots.count),
        (app) => mountVmRoutes(app, parts),
        (app) => mountVmStateRoutes(app, parts),
        (app) => mountTaskRoutes(app, parts),
        (app) => mountWorkspaceRoutes(app, parts),
        (app) => mountWorkloadRoutes(app, parts),
        (app) => mountForwardRoutes(app, parts),
        (app) => mountFlockRoutes(app, parts),
        (app) => mountTenantRoutes(app, parts),
        (app) => mountAuditRoutes(app, parts),
        (app) => mountMetricsRoutes(app, parts),
        (app) => mountSnapshots(app, parts),
        mountDocumentRoute,
      ]);
      return new Engine(parts, app, lock);
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Ends answers that would go on for ever. Call it before the listener stops, so that their clients get an end. */
  async closeStreams(): Promise<void> {
    await this.parts.flocks.close();
  }

  /** Lets go of everything. VMs go on for the next engine, unless `endVms`. */
  async close({ endVms }: { endVms: boolean }): Promise<void> {
    const { vms, snapshots, forwards, access } = this.parts;
    await this.closeStreams();
    forwards[Symbol.dispose]();
    await snapshots.close();
    await vms.close({ endVms });
    access[Symbol.dispose]();
    await this.#lock[Symbol.asyncDispose]();
  }
}

async function buildParts(
  settings: EngineSettings,
  { machines, tokens, log }: EngineGround,
): Promise<EngineParts> {
  const paths = workPaths(settings.workDir);
  const tenants = await Tenants.open(paths.tenants, log);
  const profiles = new Profiles(settings.profilesDir, settings.egressProfilesDir);
  const disk = new DiskFloor(paths.root, settings.diskFloorBytes);
  const config = settings.machines;
  const auditLines = new JsonLines(join(paths.audit, "runtime-audit.jsonl"));
  const egress = new VmEgress(profiles, log);
  const { maxVms } = settings;
  const vms = new VmTable({ dir: paths.vms, maxVms, machines, config, profiles, tenants, disk, egress, log });
  const tasks = new Tasks({ profiles, tenants, maxDepth: settings.maxTaskDepth });
  const meter = new VmMeter(
    (vmId) => tasks.isBusy(vmId),
    (vmId) => egress.networkOf(vmId),
  );
  const baseUrl = () => settings.publicUrl ?? baseUrlOf(settings.listen);
  const snapshots = await Snapshots.open({
    rootPath: paths.root,
    vms: new EngineVms(vms, baseUrl),
    tenants,
    disk,
    rootfs: () => machines.rootfs(),
    log,
  });
  const flocks = new Flocks({ dir: paths.flocks, vms, profiles, tenants, wall: settings.wall, log });
  egress.doorOf = (vm) =>
    vm.record.flock_id === undefined ? null : (request) => answerGuest(flocks, vm, request);
  const gate = new Gate(tokens, settings.metricsRequireAuth ? [] : ["/metrics"]);
  gate.addCapability((token, method, path) => flocks.clientOf(token, method, path));
  return {
    settings,
    log,
    paths,
    gate,
    disk,
    tenants,
    profiles,
    vms,
    snapshots,
    flocks,
    tasks,
    meter,
    egress,
    forwards: new Forwards(log),
    metrics: new EngineMetrics(vms, tasks, meter, egress),
    audit: await RuntimeAudit.open(auditLines, tenants, log),
    access: new JsonLines(join(paths.audit, "access.jsonl"), { rotateBytes: ACCESS_LOG_BYTES }),
    baseUrl,
  };
}
