import type { ProcessIdentity } from "../../base/process-identity.ts";
import type { RunCommand, RunHandle } from "../../guest/run-handle.ts";
import type { TunnelHandler } from "../../guest/serve-tunnels.ts";
import type { FileContent, GetRange } from "../../guest/transfer-file.ts";
import type { Tunnel } from "../../guest/tunnel.ts";
import type { SealedFile } from "../../vm/file-seal.ts";
import type { VmDeath } from "../../vm/vm-death.ts";
import type { MachineCopier } from "./machine-copier.ts";
import type { MachineRecord } from "./vm-record.ts";

/** What a machine is made from: a base, or a snapshot in the same layout below `storePath`. */
export interface MachineSource {
  /** Holds `snapshots/<name>/` */
  storePath: string;
  name: string;
  cpus: number;
  memoryBytes: number;
  /** Make the base when it is not there; a snapshot cannot be */
  isBuildable: boolean;
}

/** A running guest. Its disposal ends it, `detach` leaves it to the next engine. */
export interface Machine extends AsyncDisposable {
  readonly record: MachineRecord;
  /** Settles when it has ended by itself, with the first cause */
  readonly died: Promise<VmDeath>;
  startRun(command: RunCommand, signal: AbortSignal): RunHandle;
  /** `path` is absolute */
  putFile(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  getFile(path: string, range: GetRange, signal: AbortSignal): Promise<FileContent>;
  /** Rejects when the agent does not answer */
  ping(signal: AbortSignal): Promise<void>;
  /** Hands over each connection to the guest's proxy; runs that start from now on use it */
  serveProxy(handler: TunnelHandler, signal: AbortSignal): Promise<void>;
  /** Connects to a port of the guest's 127.0.0.1 */
  connectGuest(port: number, signal: AbortSignal): Promise<Tunnel>;
  /** It stands still, in its turn with copies; calls under way wait */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Lets `work` put the machine into files; one after another. Rejects `paused` for one that stands still. With
   * `staysStill` it does not go on afterwards, unless `work` fails
   */
  copy<T>(
    work: (copier: MachineCopier, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    staysStill?: boolean,
  ): Promise<T>;
  /** Of the VMM's process, since its start */
  usage(): MachineUsage;
  detach(): void;
}

export interface MachineUsage {
  /** Processor time, in `ms` */
  cpuMs: number;
  /** Guest memory that is its own, in `bytes` */
  memoryBytes: number;
}

/** Makes machines and finds them again. */
export interface Machines {
  /** Rejects when this engine can neither make nor adopt any, such as without an image or QEMU */
  requireGround(): Promise<void>;
  /** A place for a new VM's sockets, not yet made */
  socketDirFor(vmId: string): string;
  /** Awake and answering. Nothing is left when it rejects */
  start(source: MachineSource, place: MachinePlace, signal: AbortSignal): Promise<Machine>;
  /** Connects to one that an earlier engine started. It is left as it is when this rejects */
  adopt(known: MachineRecord, place: MachinePlace, signal: AbortSignal): Promise<Machine>;
  /** The read-only root file system that all machines share */
  rootfs(): Promise<SealedFile>;
  /** Ends what is left of a machine nobody is connected to, and removes its sockets */
  clear(vmm: ProcessIdentity | null, socketDir: string): Promise<void>;
}

export interface MachinePlace {
  socketDir: string;
  /** What the VMM writes to stderr */
  logPath: string;
}
