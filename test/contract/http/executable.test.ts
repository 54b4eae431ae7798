import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { makeCertificate } from "../../support/certificate.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpClient, HttpProcess } from "../../support/http-process.ts";
import { runExecutable } from "../../support/run-executable.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { FakeDaemon } from "../anvil/fake-daemon.ts";

const FREE = "127.0.0.1:0";

function environment(directory: TemporaryDirectory, extra: Record<string, string> = {}) {
  return { PATH: process.env["PATH"]!, HOME: directory.path, IGN_MCP_STORE: directory.path, ...extra };
}

/** The subject of the certificate a new connection gets. */
function subjectAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { port: Number(new URL(url).port), host: "127.0.0.1", rejectUnauthorized: false },
      () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

test("serves over TLS, and takes a new certificate without losing its sessions", async () => {
  using directory = new TemporaryDirectory();
  const { certPath, keyPath } = makeCertificate(directory, "first");
  const second = makeCertificate(directory, "second");
  const options = ["--tls-cert", certPath, "--tls-key", keyPath];
  const env = environment(directory, { IGN_MCP_HTTP_TOKEN: "t" });
  await using server = await HttpProcess.start(["serve", "--http", FREE, ...options], env);
  expect(server.url).toStartWith("https://127.0.0.1:");
  const again = await runExecutable(["serve", "--http", new URL(server.url).host, ...options], env);
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining("cannot listen")]);
  const ca = readFileSync(certPath, "utf8") + readFileSync(second.certPath, "utf8");
  await using client = await HttpClient.connect(server.url, "t", { ca });
  expect(await client.toolNames()).toHaveLength(5);
  expect(await subjectAt(server.url)).toBe("first");
  await expect(
    HttpClient.connect(server.url, "t", { ca: readFileSync(second.certPath, "utf8") }),
  ).rejects.toThrow();

  copyFileSync(second.certPath, certPath); // the key no longer fits: the old certificate stays
  server.signal("SIGHUP");
  await eventually("the reason", () => server.stderr.includes("could not be read again"));
  expect(await subjectAt(server.url)).toBe("first");
  copyFileSync(second.keyPath, keyPath);
  server.signal("SIGHUP");
  // A connection that is being made while the certificate changes may be reset.
  const subject = () => subjectAt(server.url).catch((error: Error) => error.message);
  await eventually("the new certificate", async () => (await subject()) === "second");
  expect(await client.toolNames()).toHaveLength(5);
  expect(await server.end()).toMatchObject({ status: 0, stdout: "" });
});

test("SIGHUP reads the tokens again", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("tokens");
  writeFileSync(path, "ann:old\n");
  const env = environment(directory, { IGN_MCP_HTTP_TOKENS_FILE: path });
  await using server = await HttpProcess.start(["serve", "--http", FREE], env);
  const statusWith = async (token: string) =>
    (await fetch(server.url, { method: "POST", headers: { authorization: `Bearer ${token}` } })).status;
  expect([await statusWith("old"), await statusWith("new")]).toEqual([400, 401]);
  writeFileSync(path, "ann:new\n");
  server.signal("SIGHUP");
  await eventually("the new token", async () => (await statusWith("new")) !== 401);
  expect([await statusWith("old"), await statusWith("new")]).toEqual([401, 400]);
});

test("a unix socket is its user's alone, and gone with the server", async () => {
  using directory = new TemporaryDirectory();
  const unix = directory.join("mcp.sock");
  await using server = await HttpProcess.start(["serve", "--http", `unix:${unix}`], environment(directory));
  expect(statSync(unix).mode & 0o777).toBe(0o600);
  expect(server.stderr).toContain("without a token: your user's processes may use it");
  const status = async () =>
    (await fetch("http://localhost/mcp", { unix, method: "POST" } as RequestInit)).status;
  expect(await status()).toBe(400);
  const other = await runExecutable(["serve", "--http", `unix:${unix}`], environment(directory));
  expect([other.status, other.stderr]).toEqual([1, expect.stringContaining("cannot listen")]);
  expect(await status()).toBe(400);
  expect((await server.end()).status).toBe(0);
  expect(existsSync(unix)).toBe(false);
});

test.each<[string, string[], Record<string, string>, number, RegExp]>([
  ["an open address without a token", ["--http", "0.0.0.0:0"], {}, 78, /there is no token/],
  ["no address", ["--http", "nonsense"], {}, 78, /host:port or unix:/],
  ["half of TLS", ["--http", FREE, "--tls-key", "/k"], {}, 78, /both files/],
  [
    "TLS files that are not there",
    ["--http", FREE, "--tls-key", "/no/k", "--tls-cert", "/no/c"],
    {},
    78,
    /ENOENT/,
  ],
  ["TLS without HTTP", ["--tls-key", "/k"], {}, 78, /need --http/],
  [
    "an address of nobody here",
    ["--http", "192.0.2.1:1"],
    { IGN_MCP_HTTP_TOKEN: "t" },
    1,
    /cannot listen on/,
  ],
  ["a token on the command line", ["--http", FREE, "--token", "t"], {}, 2, /unknown option/],
])("%s ends serve and anvil with the reason", async (_, options, extra, status, reason) => {
  using directory = new TemporaryDirectory();
  for (const command of ["serve", "anvil"]) {
    const ended = await runExecutable([command, ...options], environment(directory, extra));
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([status, "", expect.stringMatching(reason)]);
  }
});

test("a file where the socket should be is left alone", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("file");
  writeFileSync(path, "mine");
  const ended = await runExecutable(["serve", "--http", `unix:${path}`], environment(directory));
  expect([ended.status, readFileSync(path, "utf8")]).toEqual([1, "mine"]);
});

test("adapters serve several clients, who share the names of VMs", async () => {
  using directory = new TemporaryDirectory();
  await using daemon = new FakeDaemon();
  const env = environment(directory, { ANVIL_DAEMON_URL: daemon.url, IGN_MCP_HTTP_TOKEN: "t" });
  await using server = await HttpProcess.start(["anvil", "--http", FREE], env);
  await using one = await HttpClient.connect(server.url, "t");
  await using other = await HttpClient.connect(server.url, "t");
  const { vm_id } = await one.ok("anvil_spawn_vm", { session_name: "work" });
  await one.terminate();
  await other.ok("anvil_run_task", { session_name: "work", prompt: "hello" });
  expect(daemon.last.path).toBe(`/vms/${vm_id}/tasks`);
});

test("a call in flight is recorded and answered when the adapter ends", async () => {
  using directory = new TemporaryDirectory();
  await using daemon = new FakeDaemon();
  const asked = daemon.fallSilent();
  const env = environment(directory, {
    ANVIL_DAEMON_URL: daemon.url,
    ANVIL_MCP_AUDIT_LOG: directory.join("audit.jsonl"),
    ANVIL_MCP_TENANT_ID: "team-1",
  });
  await using server = await HttpProcess.start(["anvil", "--http", FREE], env);
  await using client = await HttpClient.connect(server.url);
  const answer = client.call("anvil_run_task", { vm_id: "vm-1", prompt: "x" });
  await asked;
  const ended = server.end();
  expect(JSON.stringify(await answer)).toContain("the adapter is shutting down.");
  expect((await ended).status).toBe(0);
  expect(JSON.parse(readFileSync(directory.join("audit.jsonl"), "utf8"))).toMatchObject({
    tool_name: "anvil_run_task",
    result_code: "error",
  });
});

test("without a token the start says who may use it", async () => {
  using directory = new TemporaryDirectory();
  await using server = await HttpProcess.start(["anvil", "--http", FREE], environment(directory));
  expect(server.stderr).toContain("without a token: every process of this machine may use it");
  await using client = await HttpClient.connect(server.url);
  expect(await client.toolNames()).toHaveLength(19);
  expect(await server.end("SIGINT")).toMatchObject({ status: 0, stdout: "" });
});
