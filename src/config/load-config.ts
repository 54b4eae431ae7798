import { dirname, join } from "node:path";
import type * as z from "zod";
import { nearestName } from "../base/nearest-name.ts";
import type { Config, Environment } from "./config.ts";
import { ConfigError } from "./config-error.ts";
import { dataDirectory, imageDirectory } from "./default-paths.ts";
import { VARIABLES, type VariableName } from "./variables.ts";

type Values = { [Name in VariableName]?: z.output<(typeof VARIABLES)[Name]["parse"]> };

const PREFIX = "IGN_MCP_";
const MIB = 1_048_576;

/** Reads the environment; an empty variable counts as unset. Throws `ConfigError` that names all that is wrong. */
export function loadConfig(env: Environment): Config {
  const values = readVariables(env);
  const kernelPath = values.IGN_MCP_KERNEL ?? join(imageDirectory(env), "vmlinuz");
  const imagePath = dirname(kernelPath);
  return {
    kernelPath,
    rootfsPath: values.IGN_MCP_ROOTFS ?? join(imagePath, "rootfs-tools.ext4"),
    initramfsPath: join(imagePath, "initramfs.cpio"),
    imageManifestPath: join(imagePath, "image.json"),
    storePath: values.IGN_MCP_STORE ?? dataDirectory(env),
    baseName: values.IGN_MCP_BASE ?? "tools-base",
    maxSessions: values.IGN_MCP_MAX_SESSIONS ?? 8,
    idleMs: (values.IGN_MCP_IDLE_SECS ?? 600) * 1000,
    net: values.IGN_MCP_NET ?? false,
    accel: values.IGN_MCP_ACCEL ?? null,
    memoryBytes: (values.IGN_MCP_MEM ?? 512) * MIB,
    cpus: values.IGN_MCP_CPUS ?? 1,
    poolSize: values.IGN_MCP_POOL ?? 1,
    logLevel: values.IGN_MCP_LOG ?? "warn",
  };
}

function readVariables(env: Environment): Values {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const name of Object.keys(env).filter((key) => key.startsWith(PREFIX))) {
    const text = env[name];
    if (!isKnown(name)) problems.push(unknownVariable(name));
    else if (text) {
      const parsed = VARIABLES[name].parse.safeParse(text);
      if (parsed.success) values[name] = parsed.data;
      else problems.push(`${name} is ${quote(text)}; it must be ${VARIABLES[name].allowed}.`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Values;
}

function isKnown(name: string): name is VariableName {
  return Object.hasOwn(VARIABLES, name);
}

function unknownVariable(name: string): string {
  const known = Object.keys(VARIABLES).map((variable) => variable.slice(PREFIX.length));
  const nearest = nearestName(name.slice(PREFIX.length), known);
  const next = nearest
    ? `did you mean ${PREFIX}${nearest}?`
    : "see ignition-mcp --help for those that exist.";
  return `${name} is not a variable of ignition-mcp; ${next}`;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
