import type { LogLevel } from "../base/logger.ts";

/** Variables by name, as `process.env` */
export type Environment = Readonly<Record<string, string | undefined>>;

export type Accel = "kvm" | "hvf" | "tcg";

/** The five tools, or more */
export type ToolSet = "core" | "all";

/** What sessions may reach; of a profile the path of its egress.json */
export type EgressSetting =
  | { kind: "deny_all" }
  | { kind: "profile"; profilePath: string }
  | { kind: "allow_all" };

/** Everything the environment decides. All paths are absolute. */
export interface Config {
  kernelPath: string;
  rootfsPath: string;
  /** Beside the kernel, as is the manifest */
  initramfsPath: string;
  imageManifestPath: string;
  /** Directory of bases */
  storePath: string;
  baseName: string;
  maxSessions: number;
  /** Unused time after which a session is closed, in `ms` */
  idleMs: number;
  /** Time after which a call without progress is answered though its run goes on, in `ms`; 0 for never */
  callMs: number;
  tools: ToolSet;
  /** A network card, which goes past `egress` */
  net: boolean;
  egress: EgressSetting;
  /** Forced acceleration; null to find out */
  accel: Accel | null;
  /** Guest memory, in `bytes` */
  memoryBytes: number;
  cpus: number;
  /** Clones kept ready ahead of the next open; 0 for none */
  poolSize: number;
  logLevel: LogLevel;
}
