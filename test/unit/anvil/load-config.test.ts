import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import type { AdapterConfig } from "../../../src/anvil/adapter-config.ts";
import { loadAdapterConfig } from "../../../src/anvil/load-config.ts";
import { ConfigError } from "../../../src/config/config-error.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const DEFAULTS: AdapterConfig = {
  foundFilePath: null,
  hosts: [{ name: "local", endpoint: "http://127.0.0.1:3000" }],
  apiToken: null,
  defaultTimeoutMs: 300_000,
  sessionStorePath: null,
  defaultTenantId: null,
  auditLogPath: null,
};

let directory: TemporaryDirectory;
const startedIn = process.cwd();
beforeEach(() => {
  directory = new TemporaryDirectory();
  process.chdir(directory.path);
});
afterEach(() => {
  process.chdir(startedIn);
  directory[Symbol.dispose]();
});

function fromFile(text: string, env: Record<string, string> = {}) {
  writeFileSync("file.yaml", text);
  return loadAdapterConfig({ ANVIL_MCP_CONFIG: "file.yaml", ...env });
}

function problems(load: () => unknown): string {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("the configuration was taken");
}

test("without a file and variables the defaults apply", () => {
  expect(loadAdapterConfig({})).toEqual(DEFAULTS);
});

test("the default file may be missing, and is read when it is there", () => {
  mkdirSync("configs");
  expect(loadAdapterConfig({ ANVIL_MCP_CONFIG: "" })).toEqual(DEFAULTS);
  writeFileSync("configs/anvil-mcp.yaml", "default_tenant_id: team-1\n");
  const found = { defaultTenantId: "team-1", foundFilePath: directory.join("configs/anvil-mcp.yaml") };
  expect(loadAdapterConfig({})).toEqual({ ...DEFAULTS, ...found });
});

test("a file where the directory of the default file would be is no default file", () => {
  writeFileSync("configs", "");
  expect(loadAdapterConfig({})).toEqual(DEFAULTS);
});

test("a file that was only found decides neither where a variable's token goes nor where is written", () => {
  mkdirSync("configs");
  const path = "configs/anvil-mcp.yaml";
  writeFileSync(path, "daemon_url: https://evil.example\n");
  const token = { ANVIL_API_TOKEN: "operator-key" };
  expect(problems(() => loadAdapterConfig(token))).toBe(
    `daemon_url in ${path} would decide where ANVIL_API_TOKEN goes. If that file is yours, name it in ANVIL_MCP_CONFIG.`,
  );
  expect(loadAdapterConfig({}).hosts[0].endpoint).toBe("https://evil.example");
  expect(loadAdapterConfig({ ...token, ANVIL_MCP_CONFIG: path }).hosts[0].endpoint).toBe(
    "https://evil.example",
  );
  expect(loadAdapterConfig({ ...token, ANVIL_DAEMON_URL: "http://mine" }).hosts[0].endpoint).toBe(
    "http://mine",
  );

  writeFileSync(path, "daemon_url: https://h\napi_token: of-the-file\ndefault_timeout_seconds: 5\n");
  expect(loadAdapterConfig({})).toMatchObject({
    hosts: [{ name: "local", endpoint: "https://h" }],
    apiToken: "of-the-file",
  });

  writeFileSync(path, "session_store_path: /elsewhere/x.json\naudit_log_path: a.jsonl\n");
  expect(problems(() => loadAdapterConfig({}))).toBe(
    ["session_store_path", "audit_log_path"]
      .map(
        (name) =>
          `${name} in ${path} would decide where the adapter writes. If that file is yours, name it in ANVIL_MCP_CONFIG.`,
      )
      .join("\n"),
  );
  const own = { ANVIL_MCP_SESSION_STORE: "/s.json", ANVIL_MCP_AUDIT_LOG: "/a.jsonl" };
  expect(loadAdapterConfig(own)).toMatchObject({ sessionStorePath: "/s.json", auditLogPath: "/a.jsonl" });
});

test("a file that is named must exist", () => {
  expect(problems(() => loadAdapterConfig({ ANVIL_MCP_CONFIG: "none.yaml" }))).toBe(
    "ANVIL_MCP_CONFIG names none.yaml, which does not exist. Write it, or unset it.",
  );
});

const FULL = `
daemon_url: https://engine.example:8443/base/
api_token: 0123456789
default_timeout_seconds: 60
session_store_path: state/sessions.json
default_tenant_id: 42
audit_log_path: /var/log/anvil.jsonl
scheduler_quota_store_path: quotas.json
cross_host_flock_create_mode: ""
reconcile_interval: 1m30s
`;

test("every key of a file counts, and its values are taken as they are written", () => {
  expect(fromFile(FULL)).toEqual({
    ...DEFAULTS,
    hosts: [{ name: "local", endpoint: "https://engine.example:8443/base" }],
    apiToken: "0123456789",
    defaultTimeoutMs: 60_000,
    sessionStorePath: directory.join("state/sessions.json"),
    defaultTenantId: "42",
    auditLogPath: "/var/log/anvil.jsonl",
  });
});

test("a variable wins over its key, and an empty one does not", () => {
  const env = {
    ANVIL_DAEMON_URL: "http://localhost:1///",
    ANVIL_API_TOKEN: "other",
    ANVIL_MCP_DEFAULT_TIMEOUT: "7",
    ANVIL_MCP_SESSION_STORE: "/s.json",
    ANVIL_MCP_TENANT_ID: "t",
    ANVIL_MCP_AUDIT_LOG: "/a.jsonl",
  };
  expect(fromFile(FULL, env)).toEqual({
    ...DEFAULTS,
    hosts: [{ name: "local", endpoint: "http://localhost:1" }],
    apiToken: "other",
    defaultTimeoutMs: 7000,
    sessionStorePath: "/s.json",
    defaultTenantId: "t",
    auditLogPath: "/a.jsonl",
  });
  const empty = Object.fromEntries(Object.keys(env).map((name) => [name, ""]));
  expect(fromFile(FULL, empty)).toEqual(fromFile(FULL));
});

test("null and no value at all count as left out, in a file and as the whole file", () => {
  expect(fromFile("daemon_url:\napi_token: ~\ndefault_timeout_seconds: null\n")).toEqual(DEFAULTS);
  expect(fromFile("")).toEqual(DEFAULTS);
  expect(fromFile("# nothing\n")).toEqual(DEFAULTS);
});

test("an empty mode in the environment switches off what the file switches on", () => {
  const members = "cross_host_flock_create_mode: members_only\n";
  expect(problems(() => fromFile(members))).toContain(
    "needs scheduler_state_path (ANVIL_MCP_SCHEDULER_STATE)",
  );
  expect(fromFile(members, { ANVIL_MCP_CROSS_HOST_FLOCK_CREATE: "" })).toEqual(DEFAULTS);
});

test.each([
  ["ANVIL_MCP_SCHEDULER_STATE", "state.json"],
  ["ANVIL_MCP_SCHEDULER_HOSTS_FILE", "hosts.json"],
])("%s asks for a router, which is refused and not ignored", (name, value) => {
  expect(problems(() => loadAdapterConfig({ [name]: value }))).toBe(
    `${name} asks for a router over several hosts, which this version does not have. Leave it out.`,
  );
});

test.each([
  ["ANVIL_DAEMON_URL", "ftp://h", "must have the scheme http or https"],
  ["ANVIL_DAEMON_URL", "127.0.0.1:3000", "must have the scheme http or https"],
  ["ANVIL_DAEMON_URL", "http://", "must have a host"],
  ["ANVIL_DAEMON_URL", "http:///path", "must have a host"],
  ["ANVIL_DAEMON_URL", "http://u:p@h", "must not carry a user or password"],
  ["ANVIL_DAEMON_URL", "http://h?x", "must end with its host, port or path"],
  ["ANVIL_DAEMON_URL", "http://h:99999", "must be a URL such as"],
  ["ANVIL_API_TOKEN", "a b", "must be visible ASCII characters without spaces"],
  ["ANVIL_MCP_DEFAULT_TIMEOUT", "0", "must be a whole number of seconds from 1 to 86400"],
  ["ANVIL_MCP_DEFAULT_TIMEOUT", "-5", "must be a whole number of seconds"],
  ["ANVIL_MCP_DEFAULT_TIMEOUT", "1.5", "must be a whole number of seconds"],
  ["ANVIL_MCP_DEFAULT_TIMEOUT", "86401", "must be a whole number of seconds"],
  ["ANVIL_MCP_TENANT_ID", "-a", "must be at most 64 of"],
  ["ANVIL_MCP_TENANT_ID", "a..b", "must be at most 64 of"],
  ["ANVIL_MCP_TENANT_ID", "é", "must be at most 64 of"],
  ["ANVIL_MCP_CROSS_HOST_FLOCK_CREATE", "all", "must be empty or members_only"],
  ["ANVIL_MCP_RECONCILE_INTERVAL", "60", "must be a duration such as 60s"],
  ["ANVIL_MCP_RECONCILE_INTERVAL", "-1s", "must be a duration such as 60s"],
  ["ANVIL_MCP_SESSION_STORE", "a\0b", "must not contain a NUL character"],
  ["ANVIL_MCP_SESSION_STORE", "~/x", "must be a path without ~, which is not expanded"],
  ["ANVIL_MCP_AUDIT_LOG", "~me/x", "must be a path without ~, which is not expanded"],
])("%s=%p is refused: %s", (name, value, text) => {
  expect(problems(() => loadAdapterConfig({ [name]: value }))).toStartWith(`${name} ${text}`);
});

test("values of a file that are empty are checked too, and the file is named", () => {
  expect(problems(() => fromFile('daemon_url: ""\ndefault_timeout_seconds: 0\n'))).toBe(
    "daemon_url in file.yaml must not be empty.\ndefault_timeout_seconds in file.yaml must be a whole number of seconds from 1 to 86400.",
  );
  expect(fromFile('api_token: ""\nsession_store_path: ""\nreconcile_interval: "0"\n')).toEqual(DEFAULTS);
});

test("unknown keys and variables are refused with the nearest known one", () => {
  expect(problems(() => fromFile("audit_log: x\n"))).toBe(
    '"audit_log" in file.yaml is not a setting; did you mean audit_log_path?',
  );
  expect(problems(() => loadAdapterConfig({ ANVIL_MCP_AUDIT_LGO: "x" }))).toBe(
    "ANVIL_MCP_AUDIT_LGO is not a variable of the adapter; did you mean ANVIL_MCP_AUDIT_LOG?",
  );
});

test.each([
  ["api_token: [very-secret\n", "is not sound YAML (line"],
  ["api_token: very-secret\napi_token: very-secret\n", "DUPLICATE_KEY"],
  ["- very-secret\n", "must be a mapping of settings"],
  ["api_token: {very-secret: 1}\n", "must be a single value"],
  ["api_token: very secret\n", "must be visible ASCII"],
])("a file that is no mapping of values is refused without quoting it: %j", (text, problem) => {
  const message = problems(() => fromFile(text));
  expect(message).toContain(problem);
  expect(message).not.toContain("secret");
});
