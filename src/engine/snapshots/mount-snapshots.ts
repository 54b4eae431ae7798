import type { EngineParts } from "../engine-parts.ts";
import type { EngineApp } from "../http/engine-app.ts";
import { mountBundleRoutes } from "./bundle-routes.ts";
import { mountGcRoutes } from "./gc-routes.ts";
import { mountRestoreRoutes } from "./restore-routes.ts";
import { mountSnapshotRoutes } from "./snapshot-routes.ts";

/** All routes of snapshots. */
export function mountSnapshots(app: EngineApp, parts: EngineParts): void {
  mountSnapshotRoutes(app, parts);
  mountRestoreRoutes(app, parts);
  mountGcRoutes(app, parts);
  mountBundleRoutes(app, parts);
}
