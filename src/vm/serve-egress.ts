import type { Logger } from "../base/logger.ts";
import type { EgressSetting } from "../config/config.ts";
import { EgressGate } from "../egress/egress-gate.ts";
import { loadEgressPolicy } from "../egress/egress-profile.ts";
import { serveProxyConnection } from "../egress/serve-proxy-connection.ts";
import type { Vm } from "./vm.ts";

/**
 * Gives an awake VM the way out that the setting allows, for as long as it lives. A profile is read anew for each VM, so
 * a change applies to the next one. Under `deny_all` the guest has no listener at all.
 */
export async function serveEgress(vm: Vm, setting: EgressSetting, log: Logger): Promise<void> {
  if (setting.kind === "deny_all") return;
  const gate = new EgressGate({
    policy: await loadEgressPolicy(setting),
    log,
    logFields: { vmm_pid: vm.vmmPid },
  });
  // Its tunnels end with the VM, so nothing has to be ended before.
  const untilEnd = new AbortController().signal;
  await vm.serveProxy((tunnel) => serveProxyConnection(tunnel, gate), untilEnd);
}
