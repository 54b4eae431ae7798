import { resolve } from "node:path";
import { nearestName } from "../base/nearest-name.ts";
import { isTenantId, TENANT_ID_RULE } from "../base/tenant-id.ts";
import type { Environment } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { AdapterConfig } from "./adapter-config.ts";
import { daemonUrlProblem, parseDaemonUrl } from "./daemon-url.ts";
import { parseGoDuration } from "./go-duration.ts";
import { readConfigFile } from "./read-config-file.ts";
import {
  CONFIG_VARIABLE,
  isSettingName,
  SETTINGS,
  type Setting,
  type SettingName,
  type Settings,
} from "./settings.ts";

const PREFIX = "ANVIL_MCP_";
const DEFAULT_CONFIG_PATH = "configs/anvil-mcp.yaml";
const MAX_TIMEOUT_S = 86_400;
const PATHS: readonly SettingName[] = ["session_store_path", "audit_log_path"];
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/**
 * The adapter's configuration: defaults, then the file, then the environment. The default file may be missing, one
 * that ANVIL_MCP_CONFIG names may not. Throws `ConfigError` that names all that is wrong.
 */
export function loadAdapterConfig(env: Environment): AdapterConfig {
  const problems = unknownVariables(env);
  const { foundFilePath, settings: written } = fileSettings(env);
  const given = environmentSettings(env);
  const settings = { ...written, ...given };
  problems.push(...settingProblems(settings), ...routerProblems(settings));
  if (foundFilePath !== null) problems.push(...foundFileProblems(written, given));
  if (problems.length > 0) throw new ConfigError(problems);
  const text = (name: SettingName) => settings[name]?.text || null;
  const path = (name: SettingName) => (text(name) === null ? null : resolve(text(name)!));
  return {
    foundFilePath,
    hosts: [{ name: "local", endpoint: parseDaemonUrl(text("daemon_url") ?? SETTINGS.daemon_url.fallback) }],
    apiToken: text("api_token"),
    defaultTimeoutMs:
      Number(text("default_timeout_seconds") ?? SETTINGS.default_timeout_seconds.fallback) * 1000,
    sessionStorePath: path("session_store_path"),
    defaultTenantId: text("default_tenant_id"),
    auditLogPath: path("audit_log_path"),
  };
}

/**
 * What a file that merely lies in the current directory may not decide: a cloned project could bring it along. One that
 * is named may.
 */
function foundFileProblems(written: Settings, given: Settings): string[] {
  const decides = (name: SettingName) => Boolean(written[name]?.text) && !given[name];
  const nextStep = `If that file is yours, name it in ${CONFIG_VARIABLE}.`;
  const problems = PATHS.filter(decides).map(
    (name) => `${written[name]!.origin} would decide where the adapter writes. ${nextStep}`,
  );
  if (given.api_token && decides("daemon_url"))
    problems.push(
      `${written.daemon_url!.origin} would decide where ${given.api_token.origin} goes. ${nextStep}`,
    );
  return problems;
}

function fileSettings(env: Environment): { foundFilePath: string | null; settings: Settings } {
  const named = env[CONFIG_VARIABLE];
  const path = named || DEFAULT_CONFIG_PATH;
  const settings = readConfigFile(path);
  if (settings === null && named) {
    throw new ConfigError([
      `${CONFIG_VARIABLE} names ${named}, which does not exist. Write it, or unset it.`,
    ]);
  }
  return { foundFilePath: settings === null || named ? null : resolve(path), settings: settings ?? {} };
}

/** An empty variable is unset, but for the flock mode, where it switches off what the file switches on. */
function environmentSettings(env: Environment): Settings {
  const settings: Settings = {};
  for (const [name, { variable }] of Object.entries(SETTINGS)) {
    const text = env[variable];
    if (text === undefined || !isSettingName(name)) continue;
    if (text !== "" || name === "cross_host_flock_create_mode") settings[name] = { text, origin: variable };
  }
  return settings;
}

/** What each setting's text must be; completes "… must". An empty text is checked too: the file may hold one. */
const RULES: Partial<Record<SettingName, (text: string) => string | null>> = {
  daemon_url: daemonUrlProblem,
  api_token: (text) =>
    text === "" || VISIBLE_ASCII.test(text) ? null : "be visible ASCII characters without spaces",
  default_timeout_seconds: (text) =>
    /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_TIMEOUT_S
      ? null
      : `be a whole number of seconds from 1 to ${MAX_TIMEOUT_S}`,
  default_tenant_id: (text) => (text === "" || isTenantId(text) ? null : `be ${TENANT_ID_RULE}`),
  session_store_path: pathProblem,
  audit_log_path: pathProblem,
  cross_host_flock_create_mode: (text) =>
    text === "" || text === "members_only" ? null : "be empty or members_only",
  reconcile_interval: (text) => {
    if (text === "") return null;
    const ms = parseGoDuration(text);
    return ms !== null && ms >= 0 ? null : 'be a duration such as 60s or 1m30s, or 0 for "off"';
  },
};

/** Only a shell expands it; without one a directory of that name would be made. */
function pathProblem(text: string): string | null {
  return text.startsWith("~") ? "be a path without ~, which is not expanded" : null;
}

function settingProblems(settings: Settings): string[] {
  const given = Object.entries(settings) as [SettingName, Setting][];
  return given.flatMap(([name, { text, origin }]) => {
    if (text.includes("\0")) return [`${origin} must not contain a NUL character.`];
    const problem = RULES[name]?.(text) ?? null;
    return problem === null ? [] : [`${origin} must ${problem}.`];
  });
}

/** A router over several hosts is not built yet; starting without it would ignore hosts and quotas in silence. */
function routerProblems(settings: Settings): string[] {
  const mode = settings.cross_host_flock_create_mode;
  const state = settings.scheduler_state_path;
  const hosts = settings.scheduler_hosts_file;
  if (mode?.text === "members_only" && !state?.text) {
    return [
      `${mode.origin} is members_only, which needs scheduler_state_path (${SETTINGS.scheduler_state_path.variable}).`,
    ];
  }
  return [state, hosts]
    .filter((setting) => setting?.text)
    .map(
      (setting) =>
        `${setting!.origin} asks for a router over several hosts, which this version does not have. Leave it out.`,
    );
}

function unknownVariables(env: Environment): string[] {
  const known: string[] = [CONFIG_VARIABLE, ...Object.values(SETTINGS).map(({ variable }) => variable)];
  const stems = known.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name))
    .map((name) => {
      const nearest = nearestName(name.slice(PREFIX.length), stems);
      const next = nearest ? `did you mean ${PREFIX}${nearest}?` : "see ignition-mcp anvil --help.";
      return `${name} is not a variable of the adapter; ${next}`;
    });
}
