import { isAbsolute, join } from "node:path";
import type { Config, Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { dataDirectory } from "../config/default-paths.ts";
import { type ListenAddress, parseListenAddress } from "../config/listen-address.ts";

const MIB = 1_048_576;
const OWN_PREFIX = "IGN_ENGINE_";
const OWN = ["IGN_ENGINE_DIR", "IGN_ENGINE_PROFILES", "IGN_ENGINE_DISK_FLOOR_MIB", "IGN_ENGINE_MAX_VMS"];

/** Everything the environment decides about the engine, besides tokens. All paths are absolute. */
export interface EngineSettings {
  /** Image, store, acceleration and sizes, as of the server */
  machines: Config;
  listen: ListenAddress;
  /** Without a final slash; null for the listen address */
  publicUrl: string | null;
  workDir: string;
  /** Directory of `<name>/profile.yaml` */
  profilesDir: string;
  /** Directory of `<name>/egress.json`; null for the one of profiles */
  egressProfilesDir: string | null;
  maxTaskDepth: number;
  /** Most VMs that run at once */
  maxVms: number;
  /** No VM and no snapshot is made below, in `bytes` free */
  diskFloorBytes: number;
  metricsRequireAuth: boolean;
  /** Of one file of a wall, in `bytes`, and how many older ones are kept */
  wall: { maxBytes: number; keep: number };
}

/** Reads the environment; an empty variable counts as unset. Throws `ConfigError` that names all that is wrong. */
export function loadEngineSettings(env: Environment, machines: Config): EngineSettings {
  const problems = Object.keys(env)
    .filter((name) => name.startsWith(OWN_PREFIX) && !OWN.includes(name))
    .map((name) => `${name} is not a variable of the engine; these are: ${OWN.join(", ")}.`);
  const reader = new VariableReader(env, problems);
  const settings: EngineSettings = {
    machines,
    listen: reader.listenAddress(),
    publicUrl: reader.url("EPHEMERA_PUBLIC_URL"),
    workDir: reader.path("IGN_ENGINE_DIR") ?? join(dataDirectory(env), "engine"),
    profilesDir: reader.path("IGN_ENGINE_PROFILES") ?? join(dataDirectory(env), "profiles"),
    egressProfilesDir: reader.path("EPHEMERA_EGRESS_PROFILE_DIR") ?? reader.path("ANVIL_EGRESS_PROFILE_DIR"),
    maxTaskDepth: reader.whole("EPHEMERA_MAX_TASK_DEPTH", 1, 1000, 5),
    maxVms: reader.whole("IGN_ENGINE_MAX_VMS", 1, 10_000, 64),
    diskFloorBytes: reader.whole("IGN_ENGINE_DISK_FLOOR_MIB", 0, 1_073_741_824, 512) * MIB,
    metricsRequireAuth: reader.flag("EPHEMERA_METRICS_REQUIRE_AUTH"),
    wall: {
      maxBytes: reader.whole("EPHEMERA_TOWNWALL_MAX_MIB", 1, 4096, 10) * MIB,
      keep: reader.whole("EPHEMERA_TOWNWALL_KEEP", 0, 1000, 3),
    },
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

/** Reads single variables and keeps a sentence for each that is wrong. */
class VariableReader {
  readonly #env: Environment;
  readonly #problems: string[];

  constructor(env: Environment, problems: string[]) {
    this.#env = env;
    this.#problems = problems;
  }

  listenAddress(): ListenAddress {
    const text = this.#env["ANVIL_API_ADDR"] || "127.0.0.1:3000";
    const address = parseListenAddress(text);
    if (address === null) this.#refuse("ANVIL_API_ADDR", "host:port or unix:/absolute/path");
    return address ?? { host: "127.0.0.1", port: 3000 };
  }

  path(name: string): string | null {
    const text = this.#env[name];
    if (!text) return null;
    if (!isAbsolute(text) || text.includes("\0")) this.#refuse(name, "an absolute path");
    return text;
  }

  url(name: string): string | null {
    const text = this.#env[name];
    if (!text) return null;
    const url = URL.parse(text);
    if (url === null || !["http:", "https:"].includes(url.protocol))
      this.#refuse(name, "an http or https URL");
    return text.replace(/\/+$/, "");
  }

  whole(name: string, min: number, max: number, fallback: number): number {
    const text = this.#env[name];
    if (!text) return fallback;
    const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.#refuse(name, `a whole number from ${min} to ${max}`);
    return fallback;
  }

  flag(name: string): boolean {
    const text = (this.#env[name] ?? "").toLowerCase();
    if (["", "0", "false", "no", "off"].includes(text)) return false;
    if (!["1", "true", "yes", "on"].includes(text))
      this.#refuse(name, "1, true, yes, on, or their opposites");
    return true;
  }

  #refuse(name: string, allowed: string): void {
    this.#problems.push(`${name} is ${JSON.stringify(this.#env[name])}; it must be ${allowed}.`);
  }
}
