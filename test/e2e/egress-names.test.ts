import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Subprocess } from "bun";
import { describeWithNamespace, NetworkNamespace } from "../support/network-namespace.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { makeCertificate } from "../support/self-made-certificate.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const FILE_SERVER = resolve(import.meta.dir, "../support/tls-files.ts");
/** Of one server, which has all three names; the first two are listed */
const ADDRESS = "93.184.216.34";
const [LISTED, BELOW, OTHER] = ["listed.example", "git.below.example", "other.example"];
const CURL = "curl -sS --max-time 20 --cacert /root/ca.pem";

describeWithVms("a session whose profile lists names", () => {
  describeWithNamespace("in a network where they are public", () => {
    const files = new TemporaryDirectory();
    let namespace: NetworkNamespace;
    let upstream: Subprocess<"ignore", "pipe", "inherit">;
    let server: TestServer;
    let session: TestSession;

    beforeAll(async () => {
      const certificate = makeCertificate(LISTED, BELOW, OTHER);
      writeFileSync(files.join("cert.pem"), certificate.cert);
      writeFileSync(files.join("key.pem"), certificate.key);
      writeFileSync(files.join("hello"), "hello\n");
      writeFileSync(
        files.join("egress.json"),
        JSON.stringify({ allow_sni: [LISTED, "*.below.example"], allow_cidrs: [] }),
      );
      makeRepository(files);
      namespace = await NetworkNamespace.open({ [LISTED]: ADDRESS, [BELOW]: ADDRESS, [OTHER]: ADDRESS });
      upstream = Bun.spawn(namespace.argv(process.execPath, FILE_SERVER, files.path, ADDRESS, "443"), {
        stdout: "pipe",
        stderr: "inherit",
      });
      await upstream.stdout.getReader().read();
      const env = { IGN_MCP_EGRESS: `profile:${files.join("egress.json")}`, IGN_MCP_POOL: "0" };
      server = await TestServer.start(env, (...command) => namespace.argv(...command));
      session = await server.open();
      await session.writeFile("/root/ca.pem", certificate.cert);
    }, 120_000);
    afterAll(async () => {
      await server[Symbol.asyncDispose]();
      upstream.kill();
      await upstream.exited;
      await namespace[Symbol.asyncDispose]();
      files[Symbol.dispose]();
    });

    test("reaches them over TLS with curl, and no other name of the same server", async () => {
      for (const name of [LISTED, BELOW])
        expect(await session.output(`${CURL} https://${name}/hello`)).toBe("hello\n");
      const { stdout, stderr } = await session.run(`${CURL} https://${OTHER}/hello`);
      expect(stdout).toBe("");
      expect(stderr).toContain("403");
    });

    test("cannot show the server another name than the one it was let through for", async () => {
      const hidden = `${CURL} --connect-to ${OTHER}:443:${LISTED}:443 https://${OTHER}/hello`;
      const { exit_code, stdout, stderr } = await session.run(hidden);
      expect({ exit_code, stdout }).toEqual({ exit_code: 35, stdout: "" });
      expect(stderr).toMatch(/alert access denied/i);
      const nameless = await session.run(`${CURL} -k --connect-to ::${LISTED}:443 https://${ADDRESS}/hello`);
      expect(nameless).toMatchObject({ exit_code: 35, stdout: "" });
    });

    test("does not reach their address by itself", async () => {
      const { stderr } = await session.run(`${CURL} -k https://${ADDRESS}/hello`);
      expect(stderr).toContain("403");
    });

    test("clones from them with git", async () => {
      const git = "GIT_SSL_CAINFO=/root/ca.pem git";
      await session.output(`${git} clone --quiet https://${BELOW}/repository.git /root/clone`, {
        timeout_s: 60,
      });
      expect(await session.output("cat /root/clone/greeting")).toBe("hello\n");
      const refused = await session.run(`${git} clone --quiet https://${OTHER}/repository.git /root/other`);
      expect(refused.exit_code).not.toBe(0);
    });
  });
});

/** A repository that a server of files can serve. */
function makeRepository(files: TemporaryDirectory): void {
  const script = `
    git init --quiet --bare repository.git &&
    git init --quiet work && cd work && echo hello >greeting && git add greeting &&
    git -c user.name=test -c user.email=test@example.com commit --quiet --message 'Greet' &&
    git push --quiet ../repository.git HEAD:refs/heads/main &&
    cd ../repository.git && git symbolic-ref HEAD refs/heads/main && git update-server-info`;
  const env = { PATH: process.env["PATH"], HOME: files.path, GIT_CONFIG_NOSYSTEM: "1" };
  const { exitCode, stderr } = Bun.spawnSync(["sh", "-c", script], { cwd: files.path, env });
  if (exitCode !== 0) throw new Error(`git made no repository: ${stderr}`);
}
