import { expect, test } from "bun:test";
import { baseUrlOf, isLocal, parseListenAddress } from "../../../src/config/listen-address.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { loadEngineSettings } from "../../../src/engine/engine-settings.ts";

const load = (env: Record<string, string>) => loadEngineSettings(env, loadConfig({}));

test("without variables the engine listens on this machine and works in the home directory", () => {
  expect(load({ HOME: "/h" })).toMatchObject({
    listen: { host: "127.0.0.1", port: 3000 },
    publicUrl: null,
    workDir: "/h/.local/share/ignition/engine",
    profilesDir: "/h/.local/share/ignition/profiles",
    egressProfilesDir: null,
    maxTaskDepth: 5,
    diskFloorBytes: 512 * 1_048_576,
    metricsRequireAuth: false,
    wall: { maxBytes: 10 * 1_048_576, keep: 3 },
  });
});

test("every variable has its effect", () => {
  const settings = load({
    ANVIL_API_ADDR: "unix:/run/x.sock",
    EPHEMERA_PUBLIC_URL: "https://vms.example.org/",
    IGN_ENGINE_DIR: "/work-dir",
    IGN_ENGINE_PROFILES: "/profiles",
    EPHEMERA_EGRESS_PROFILE_DIR: "/first",
    ANVIL_EGRESS_PROFILE_DIR: "/second",
    EPHEMERA_MAX_TASK_DEPTH: "2",
    IGN_ENGINE_DISK_FLOOR_MIB: "1",
    EPHEMERA_METRICS_REQUIRE_AUTH: "Yes",
    EPHEMERA_TOWNWALL_MAX_MIB: "1",
    EPHEMERA_TOWNWALL_KEEP: "0",
  });
  expect(settings).toMatchObject({
    listen: { unix: "/run/x.sock" },
    publicUrl: "https://vms.example.org",
    workDir: "/work-dir",
    profilesDir: "/profiles",
    egressProfilesDir: "/first",
    maxTaskDepth: 2,
    diskFloorBytes: 1_048_576,
    metricsRequireAuth: true,
    wall: { maxBytes: 1_048_576, keep: 0 },
  });
  expect(load({ ANVIL_EGRESS_PROFILE_DIR: "/second" }).egressProfilesDir).toBe("/second");
});

test.each([
  ["IGN_ENGINE_DIRECTORY", "/x", "IGN_ENGINE_DIRECTORY is not a variable of the engine"],
  ["IGN_ENGINE_DIR", "relative", "must be an absolute path"],
  ["ANVIL_API_ADDR", "3000", "must be host:port or unix:/absolute/path"],
  ["EPHEMERA_PUBLIC_URL", "ftp://x", "must be an http or https URL"],
  ["EPHEMERA_MAX_TASK_DEPTH", "0", "must be a whole number from 1 to 1000"],
  ["EPHEMERA_TOWNWALL_MAX_MIB", "ten", "must be a whole number"],
  ["EPHEMERA_METRICS_REQUIRE_AUTH", "perhaps", "must be 1, true, yes, on"],
])("%s=%s is refused", (name, value, text) => {
  expect(() => load({ [name]: value })).toThrow(text);
});

test("addresses are host and port, IPv6 in brackets, or an absolute socket path", () => {
  expect(parseListenAddress(":80")).toEqual({ host: "0.0.0.0", port: 80 });
  expect(parseListenAddress("[::1]:80")).toEqual({ host: "::1", port: 80 });
  for (const text of ["host", "host:65536", "::1:80", "unix:relative", `unix:/${"x".repeat(103)}`, "a:b:1"])
    expect([text, parseListenAddress(text)]).toEqual([text, null]);
});

test("only loopback addresses and sockets are local", () => {
  const local = ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "unix:/x"];
  const open = [
    ":1",
    "0.0.0.0:1",
    "[::]:1",
    "10.0.0.1:1",
    "127.0.0.1.example.org:1",
    "localhost.example.org:1",
  ];
  for (const text of local) expect([text, isLocal(parseListenAddress(text)!)]).toEqual([text, true]);
  for (const text of open) expect([text, isLocal(parseListenAddress(text)!)]).toEqual([text, false]);
  expect(baseUrlOf({ host: "::1", port: 3 })).toBe("http://[::1]:3");
});
