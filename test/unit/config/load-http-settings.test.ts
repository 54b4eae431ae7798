import { expect, test } from "bun:test";
import { loadHttpSettings } from "../../../src/config/load-http-settings.ts";

test("the defaults let this machine in", () => {
  const { tokens, ...settings } = loadHttpSettings({}, { http: "127.0.0.1:8080" });
  expect(settings).toEqual({
    listen: { host: "127.0.0.1", port: 8080 },
    tls: null,
    hosts: [],
    origins: [],
    maxClients: 64,
    idleMs: 3_600_000,
  });
  expect(tokens.isEmpty).toBe(true);
});

test("everything can be set; the command line's files win", () => {
  const env = {
    IGN_MCP_HTTP_TOKEN: "t",
    IGN_MCP_HTTP_HOSTS: "MCP.example.org, [::1]",
    IGN_MCP_HTTP_ORIGINS: "https://app.example.org",
    IGN_MCP_HTTP_TLS_CERT: "/env.crt",
    IGN_MCP_HTTP_TLS_KEY: "/env.key",
    IGN_MCP_HTTP_MAX_CLIENTS: "3",
    IGN_MCP_HTTP_IDLE_SECS: "5",
  };
  const { tokens, ...settings } = loadHttpSettings(env, {
    http: ":443",
    tlsCert: "/cli.crt",
    tlsKey: "/cli.key",
  });
  expect(settings).toEqual({
    listen: { host: "0.0.0.0", port: 443 },
    tls: { certPath: "/cli.crt", keyPath: "/cli.key" },
    hosts: ["mcp.example.org", "[::1]"],
    origins: ["https://app.example.org"],
    maxClients: 3,
    idleMs: 5000,
  });
  expect(tokens.clientOf("t")).toBe("default");
});

test.each(["0.0.0.0:80", ":80", "192.0.2.1:80", "[2001:db8::1]:80", "box.example.org:80"])(
  "%s needs a token",
  (http) => {
    expect(() => loadHttpSettings({}, { http })).toThrow(/there is no token/);
    expect(loadHttpSettings({ IGN_MCP_HTTP_TOKEN: "t" }, { http }).tokens.isEmpty).toBe(false);
  },
);

test.each([
  [{}, { http: "8080" }, /host:port or unix:/],
  [{}, { http: "unix:relative" }, /host:port or unix:/],
  [{}, { http: "localhost:1", tlsCert: "/c" }, /needs both files/],
  [{}, { http: "unix:/run/x", tlsCert: "/c", tlsKey: "/k" }, /not served on a unix socket/],
  [{ IGN_MCP_HTTP_HOSTS: "https://x" }, { http: "localhost:1" }, /IGN_MCP_HTTP_HOSTS/],
  [{ IGN_MCP_HTTP_HOSTS: "x:80" }, { http: "localhost:1" }, /without ports/],
  [{ IGN_MCP_HTTP_ORIGINS: "*" }, { http: "localhost:1" }, /IGN_MCP_HTTP_ORIGINS/],
  [{ IGN_MCP_HTTP_ORIGINS: "https://x/" }, { http: "localhost:1" }, /IGN_MCP_HTTP_ORIGINS/],
  [{ IGN_MCP_HTTP_TOKENS_FILE: "/nowhere/tokens" }, { http: "localhost:1" }, /cannot be read \(ENOENT\)/],
])("%p with %p is refused", (env, options, reason) => {
  expect(() => loadHttpSettings(env, options)).toThrow(reason);
});

test("a token that no header can carry is refused without being shown", () => {
  const load = () => loadHttpSettings({ IGN_MCP_HTTP_TOKEN: "s3cret token" }, { http: "localhost:1" });
  expect(load).toThrow(/visible ASCII/);
  expect(load).not.toThrow(/s3cret/);
});
