import { dirname, join } from "node:path";
import { nearestName } from "../base/nearest-name.ts";
import type { Config, Environment } from "./config.ts";
import { ConfigError } from "./config-error.ts";
import { dataDirectory, imageDirectory } from "./default-paths.ts";
import { VARIABLES, type VariableValues } from "./variables.ts";

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
    baseName: values.IGN_MCP_BASE,
    maxSessions: values.IGN_MCP_MAX_SESSIONS,
    idleMs: values.IGN_MCP_IDLE_SECS * 1000,
    callMs: values.IGN_MCP_CALL_SECS * 1000,
    tools: values.IGN_MCP_TOOLS,
    net: values.IGN_MCP_NET ?? false,
    egress: values.IGN_MCP_EGRESS,
    accel: values.IGN_MCP_ACCEL ?? null,
    memoryBytes: values.IGN_MCP_MEM * MIB,
    cpus: values.IGN_MCP_CPUS,
    poolSize: values.IGN_MCP_POOL,
    logLevel: values.IGN_MCP_LOG,
  };
}

/** The values of all variables. Throws `ConfigError` that names all that is wrong. */
export function readVariables(env: Environment): VariableValues {
  const values: Record<string, unknown> = {};
  const problems = Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !isKnown(name))
    .map(unknownVariable);
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const text = env[name] || ("fixed" in variable ? variable.fallback : undefined);
    if (text === undefined) continue;
    const parsed = variable.parse.safeParse(text);
    if (parsed.success) values[name] = parsed.data;
    else problems.push(`${name} is ${quote(text)}; it must be ${variable.allowed}.`);
  }
  if (env["IGN_MCP_NET"] && env["IGN_MCP_EGRESS"])
    problems.push(
      "IGN_MCP_NET is a network card, which goes past the rules of IGN_MCP_EGRESS; set one of them.",
    );
  if (problems.length > 0) throw new ConfigError(problems);
  return values as VariableValues;
}

function isKnown(name: string): boolean {
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
