import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { NpmRegistry } from "../../support/npm-registry.ts";
import { ProxyPort, TestGate } from "../../support/proxied-guest.ts";
import { makeCertificate } from "../../support/self-made-certificate.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const NAME = "registry.example";
const certificate = makeCertificate(NAME);
const NPM = Bun.which("npm");

/** Runs a package manager with a guest's variables, in an empty project; what was installed, or what it said. */
async function install(argv: string[], registry: NpmRegistry, origin: string, listed: string) {
  using directory = new TemporaryDirectory();
  const rules = parseEgressProfile(JSON.stringify({ allow_sni: [listed] }), "test");
  using gate = new TestGate({ policy: { kind: "profile", rules } });
  await using proxy = await ProxyPort.open(gate);
  writeFileSync(directory.join("package.json"), '{"name":"project","version":"1.0.0"}');
  writeFileSync(directory.join("ca.pem"), certificate.cert);
  const child = Bun.spawn(argv, {
    cwd: directory.path,
    env: {
      PATH: process.env["PATH"],
      HOME: directory.path,
      http_proxy: proxy.url,
      https_proxy: proxy.url,
      all_proxy: proxy.url,
      NODE_USE_ENV_PROXY: "1",
      NODE_EXTRA_CA_CERTS: directory.join("ca.pem"),
      npm_config_cafile: directory.join("ca.pem"),
      npm_config_registry: `${origin}/`,
      npm_config_update_notifier: "false",
      npm_config_fetch_retries: "0",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (child.exitCode !== 0) return { said: said.join("\n"), asked: registry.asked, gate };
  const installed = readFileSync(directory.join("node_modules/greeting/index.js"), "utf8");
  return { installed, asked: registry.asked, gate };
}

const MANAGERS: [string, string[] | null][] = [
  ["npm", NPM === null ? null : [NPM, "install", "--no-audit", "--no-fund", "greeting"]],
  ["bun", [process.execPath, "add", "greeting"]],
];

describe.each(MANAGERS)("%s", (_, argv) => {
  const testWithIt = test.skipIf(argv === null);

  testWithIt.each(["https", "http"])(
    "installs through the proxy from a listed registry over %s",
    async (scheme) => {
      using registry = new NpmRegistry(scheme === "https" ? certificate : null);
      const origin = `${scheme}://${NAME}:${registry.port}`;
      const result = await install(argv!, registry, origin, NAME);
      expect(result).toMatchObject({ installed: 'module.exports = "hello";\n' });
      // The name leads nowhere without the proxy.
      expect(result.asked).toContain(`${NAME}/greeting.tgz`);
    },
    60_000,
  );

  testWithIt(
    "installs nothing from one that is not listed",
    async () => {
      using registry = new NpmRegistry(certificate);
      const origin = `https://${NAME}:${registry.port}`;
      const result = await install(argv!, registry, origin, "other.example");
      expect(result.installed).toBeUndefined();
      expect(result.asked).toEqual([]);
      expect(result.gate.counters.refused.get("name_not_listed")).toBeGreaterThan(0);
    },
    60_000,
  );
});
