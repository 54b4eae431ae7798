import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../../../src/config/config-error.ts";
import { dataDirectory, imageDirectory } from "../../../src/config/default-paths.ts";
import { loadConfig } from "../../../src/config/load-config.ts";

const root = mkdtempSync(join(tmpdir(), "ignition-config-"));
afterAll(() => rmSync(root, { recursive: true }));

function problems(env: Record<string, string>): string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  throw new Error("nothing was refused");
}

test("without variables everything has its default, under the home directory", () => {
  const { kernelPath, rootfsPath, initramfsPath, imageManifestPath, ...rest } = loadConfig({ HOME: root });
  expect(rest).toEqual({
    storePath: join(root, ".local/share/ignition"),
    baseName: "tools-base",
    maxSessions: 8,
    idleMs: 600_000,
    callMs: 50_000,
    tools: "core",
    net: false,
    egress: { kind: "deny_all" },
    accel: null,
    memoryBytes: 536_870_912,
    cpus: 1,
    poolSize: 1,
    logLevel: "warn",
  });
  expect(kernelPath).toEndWith("/image/vmlinuz");
  expect(rootfsPath).toEndWith("/image/rootfs-tools.ext4");
  expect(initramfsPath).toEndWith("/image/initramfs.cpio");
  expect(imageManifestPath).toEndWith("/image/image.json");
});

test("the seed's configuration block is understood, and more", () => {
  const config = loadConfig({
    IGN_MCP_KERNEL: "/opt/k/Image",
    IGN_MCP_ROOTFS: "/opt/r/rootfs-tools.ext4",
    IGN_MCP_STORE: "/opt/store",
    IGN_MCP_BASE: "my-base.2",
    IGN_MCP_MAX_SESSIONS: "3",
    IGN_MCP_IDLE_SECS: "60",
    IGN_MCP_CALL_SECS: "0",
    IGN_MCP_TOOLS: "all",
    IGN_MCP_NET: "0",
    IGN_MCP_ACCEL: "tcg",
    IGN_MCP_MEM: "1024",
    IGN_MCP_CPUS: "2",
    IGN_MCP_POOL: "0",
    IGN_MCP_LOG: "silent",
    IGN_MCP_CARRIER: "twin",
  });
  expect(config).toEqual({
    kernelPath: "/opt/k/Image",
    rootfsPath: "/opt/r/rootfs-tools.ext4",
    initramfsPath: "/opt/k/initramfs.cpio",
    imageManifestPath: "/opt/k/image.json",
    storePath: "/opt/store",
    baseName: "my-base.2",
    maxSessions: 3,
    idleMs: 60_000,
    callMs: 0,
    tools: "all",
    net: true,
    egress: { kind: "deny_all" },
    accel: "tcg",
    memoryBytes: 1_073_741_824,
    cpus: 2,
    poolSize: 0,
    logLevel: "silent",
  });
});

test("an empty variable counts as unset", () => {
  const config = loadConfig({ HOME: root, IGN_MCP_NET: "", IGN_MCP_MEM: "", IGN_MCP_STORE: "" });
  expect(config).toEqual(loadConfig({ HOME: root }));
});

test.each([
  ["IGN_MCP_MAX_SESSIONS", "eight", "a whole number from 1 to 1024"],
  ["IGN_MCP_MAX_SESSIONS", "0", "a whole number from 1 to 1024"],
  ["IGN_MCP_MAX_SESSIONS", "1025", "a whole number from 1 to 1024"],
  ["IGN_MCP_IDLE_SECS", "-5", "a whole number from 1 to 604800"],
  ["IGN_MCP_IDLE_SECS", "1.5", "a whole number from 1 to 604800"],
  ["IGN_MCP_MEM", "64", "a whole number from 128 to 65536"],
  ["IGN_MCP_MEM", "1e3", "a whole number from 128 to 65536"],
  ["IGN_MCP_CPUS", " 2", "a whole number from 1 to 8"],
  ["IGN_MCP_POOL", "65", "a whole number from 0 to 64"],
  ["IGN_MCP_ACCEL", "KVM", "one of kvm, hvf, tcg"],
  ["IGN_MCP_CARRIER", "usb", "one of native, twin"],
  ["IGN_MCP_CALL_SECS", "-1", "a whole number from 0 to 3600"],
  ["IGN_MCP_TOOLS", "some", "one of core, all"],
  ["IGN_MCP_LOG", "loud", "one of debug, info, warn, error, silent"],
  ["IGN_MCP_BASE", "../up", "1 to 64 of a-z 0-9 . _ - and start with a letter or digit"],
  ["IGN_MCP_BASE", "a".repeat(65), "1 to 64 of a-z 0-9 . _ - and start with a letter or digit"],
])("%s=%p is refused with what is allowed", (name, value, allowed) => {
  expect(problems({ [name]: value })).toEqual([
    `${name} is ${JSON.stringify(value)}; it must be ${allowed}.`,
  ]);
});

test("paths from the current directory are refused: a client's project must not steer the server", () => {
  for (const name of ["IGN_MCP_KERNEL", "IGN_MCP_ROOTFS", "IGN_MCP_STORE"]) {
    for (const value of ["./mcp-store", "mcp-store", "~/store"]) {
      expect(problems({ [name]: value })[0]).toStartWith(
        `${name} is "${value}"; it must be an absolute path`,
      );
    }
  }
});

test("an unknown variable is refused with its nearest relative", () => {
  expect(problems({ IGN_MCP_IDLE_SEC: "5" })).toEqual([
    "IGN_MCP_IDLE_SEC is not a variable of ignition-mcp; did you mean IGN_MCP_IDLE_SECS?",
  ]);
  expect(problems({ IGN_MCP_SOMETHING_ELSE: "5" })[0]).toContain("see ignition-mcp --help");
  expect(problems({ IGN_MCP_toString: "5" })[0]).toContain("is not a variable");
});

test("other variables are none of our business", () => {
  expect(loadConfig({ HOME: root, PATH: "/bin", IGNITION: "x" })).toEqual(loadConfig({ HOME: root }));
});

test("all that is wrong is told at once, and a long value is cut", () => {
  const lines = problems({ IGN_MCP_MEM: "x", IGN_MCP_CPUS: "9", IGN_MCP_LOG: "y".repeat(5000) });
  expect(lines).toHaveLength(3);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(400);
});

test("a home that is not absolute is not used", () => {
  expect(dataDirectory({ HOME: "." })).toBe(join(userInfo().homedir, ".local/share/ignition"));
  expect(dataDirectory({})).toBe(join(userInfo().homedir, ".local/share/ignition"));
});

test("the image is looked for beside the executable, in its share, then in the home directory", () => {
  const executable = join(root, "bin");
  const installed = join(root, ".local/share/ignition/image");
  const find = () => imageDirectory({ HOME: root }, executable);
  expect(find()).toBe(installed);
  mkdirSync(installed, { recursive: true });
  expect(find()).toBe(installed);
  mkdirSync(join(root, "share/ignition/image"), { recursive: true });
  expect(find()).toBe(join(root, "share/ignition/image"));
  mkdirSync(join(executable, "image"), { recursive: true });
  expect(find()).toBe(join(executable, "image"));
});

test.each([
  ["deny_all", { kind: "deny_all" }],
  ["allow_all", { kind: "allow_all" }],
  ["profile:/etc/egress.json", { kind: "profile", profilePath: "/etc/egress.json" }],
])("IGN_MCP_EGRESS=%s is understood", (text, egress) => {
  expect(loadConfig({ HOME: root, IGN_MCP_EGRESS: text }).egress as object).toEqual(egress);
});

test.each(["none", "profile", "profile:", "profile:egress.json", "allow_all:/x", "profile:/a\0b"])(
  "IGN_MCP_EGRESS=%j is refused with what is allowed",
  (text) => {
    expect(problems({ HOME: root, IGN_MCP_EGRESS: text })).toEqual([
      expect.stringContaining(
        "it must be deny_all, allow_all, or profile: and the absolute path of an egress.json.",
      ),
    ]);
  },
);

test("a network card and rules for egress are not both set", () => {
  expect(problems({ HOME: root, IGN_MCP_NET: "1", IGN_MCP_EGRESS: "deny_all" })).toEqual([
    expect.stringContaining("set one of them"),
  ]);
});
