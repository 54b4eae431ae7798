import type { AnvilTool } from "./anvil-tool.ts";
import { copyIn } from "./tools/copy-in.ts";
import { copyOut } from "./tools/copy-out.ts";
import { createRoutedFlockMembers } from "./tools/create-routed-flock-members.ts";
import { createSnapshot } from "./tools/create-snapshot.ts";
import { deleteFlock } from "./tools/delete-flock.ts";
import { deleteSnapshot } from "./tools/delete-snapshot.ts";
import { deleteVm } from "./tools/delete-vm.ts";
import { getFlock } from "./tools/get-flock.ts";
import { getTownwallHistory } from "./tools/get-townwall-history.ts";
import { getVmHealth } from "./tools/get-vm-health.ts";
import { listFlocks } from "./tools/list-flocks.ts";
import { listSnapshots } from "./tools/list-snapshots.ts";
import { postTownwall } from "./tools/post-townwall.ts";
import { replicateSnapshot } from "./tools/replicate-snapshot.ts";
import { restoreSnapshot } from "./tools/restore-snapshot.ts";
import { runTask } from "./tools/run-task.ts";
import { spawnFlock } from "./tools/spawn-flock.ts";
import { spawnVm } from "./tools/spawn-vm.ts";
import { stopVm } from "./tools/stop-vm.ts";

/** In the order clients see them, which never changes. */
export const ANVIL_TOOLS: readonly AnvilTool[] = [
  spawnVm,
  runTask,
  copyIn,
  copyOut,
  getVmHealth,
  stopVm,
  deleteVm,
  createSnapshot,
  listSnapshots,
  restoreSnapshot,
  deleteSnapshot,
  replicateSnapshot,
  spawnFlock,
  createRoutedFlockMembers,
  listFlocks,
  getFlock,
  deleteFlock,
  postTownwall,
  getTownwallHistory,
];
