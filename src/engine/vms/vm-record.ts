import * as z from "zod";
import type { ProcessIdentity } from "../../base/process-identity.ts";
import { isProcessIdentity } from "../../base/process-identity.ts";
import { baseManifest } from "../../vm/base-manifest.ts";

const processIdentity = z.custom<ProcessIdentity>(
  (text) => typeof text === "string" && isProcessIdentity(text),
);

/** What a machine needs to be found again by the next engine. */
export const machineRecord = z.object({
  /** QEMU's own process */
  vmm: processIdentity,
  identity: z.object({ hostname: z.string(), machineId: z.string() }),
  /** The base or snapshot it is a clone of, as it was then */
  origin: z.object({ storePath: z.string(), name: z.string(), manifest: baseManifest }),
});
export type MachineRecord = z.infer<typeof machineRecord>;

/** `vms/<vm_id>/state.json`. Wire names, since it is read by people too. */
export const vmRecord = z.object({
  schema_version: z.literal(1),
  vm_id: z.string(),
  /** `creating` is written before QEMU starts: what is found in this state was never told to anybody */
  state: z.enum(["creating", "running", "stopped", "dead"]),
  /** Why it is dead; a whole clause */
  cause: z.string().optional(),
  /** As asked for; the default one's name is not written */
  profile: z.string().optional(),
  tenant_id: z.string().optional(),
  egress_policy: z.enum(["deny_all", "profile", "allow_all"]).optional(),
  flock_id: z.string().optional(),
  agent_id: z.string().optional(),
  control_plane_token: z.string().optional(),
  source_snapshot_id: z.string().optional(),
  agent_token: z.string(),
  /** A label: nothing routes to it */
  guest_ip: z.string(),
  /** RFC 3339 */
  created_at: z.string(),
  /** The machine stands still on somebody's wish */
  paused: z.boolean(),
  cpus: z.int().positive(),
  memory_bytes: z.int().positive(),
  /** Ports of the host's loopback that lead to the guest's */
  forwards: z.array(z.object({ guest_port: z.int(), host_port: z.int() })).default([]),
  /** Absolute: where its sockets are depends on the environment of the engine that made it */
  socket_dir: z.string(),
  /** Null while it is being made */
  machine: machineRecord.nullable(),
});
export type VmRecord = z.infer<typeof vmRecord>;
