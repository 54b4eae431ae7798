import { baseNameFor } from "../../config/base-name-for.ts";
import type { Config } from "../../config/config.ts";
import type { MachineSource } from "../vms/machine.ts";
import type { Profile } from "./profile.ts";

const MIB = 1_048_576;

/** The base a profile's VMs are clones of. One of another size than the server's is another base. */
export function machineSourceOf(profile: Profile, config: Config): MachineSource {
  const cpus = profile.cpus ?? config.cpus;
  const memoryBytes = profile.memory_mib === undefined ? config.memoryBytes : profile.memory_mib * MIB;
  const isOfUsualSize = cpus === config.cpus && memoryBytes === config.memoryBytes;
  const sized = isOfUsualSize ? baseNameFor(config) : `${baseNameFor(config)}-${cpus}x${memoryBytes / MIB}`;
  const name = profile.base ?? sized;
  return { storePath: config.storePath, name, cpus, memoryBytes, isBuildable: true };
}
