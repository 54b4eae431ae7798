import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { findJail, type Jail } from "../../src/vm/jail.ts";
import { bubblewrapArgv, bubblewrapChoices } from "../../src/vm/jail-bubblewrap.ts";
import type { JailRequest } from "../../src/vm/jail-request.ts";
import { minimalRoot } from "../../src/vm/jail-root.ts";
import { findQemu } from "../../src/vm/qemu/find-qemu.ts";
import { eventually } from "../support/eventually.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import { TestEngine } from "../support/test-engine.ts";
import { TestServer } from "../support/test-server.ts";

const MEMORY_BYTES = 512 * 1_048_576;
const PROBE_SOURCE = resolve(import.meta.dir, "../support/jail-probe.c");

type Answers = Record<string, string | number>;

/** What a VMM that was taken over would like to have, and the session's own directory. */
class Neighbourhood extends TemporaryDirectory {
  readonly probePath = this.join("program/probe");
  readonly homePath = this.join("home");
  readonly otherSocketPath = this.join("run/2/vsock.sock");
  readonly basePath = this.join("store/memory.bin");
  readonly sessionPath = this.join("run/1");
  readonly #listeners: { stop(force?: boolean): void }[];
  readonly #port: number;
  #connections = 0;
  /** Connections of `countConnections` that were accepted */
  #own = 0;

  constructor() {
    super();
    for (const name of ["program", "home", "store", "run/1", "run/2"])
      mkdirSync(this.join(name), { recursive: true });
    writeFileSync(this.basePath, "the base");
    const socket = { open: () => void this.#connections++, data: () => void this.#own++ };
    const tcp = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
    this.#port = tcp.port;
    this.#listeners = [tcp, Bun.listen({ unix: this.otherSocketPath, socket })];
    const flags = ["-static", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wconversion"];
    const { exitCode, stderr } = Bun.spawnSync(["gcc", ...flags, "-o", this.probePath, PROBE_SOURCE]);
    if (exitCode !== 0) throw new Error(`the probe does not compile: ${stderr}`);
  }

  request(): JailRequest {
    return {
      readOnlyPaths: [this.join("store"), this.join("program")],
      writablePaths: [this.sessionPath],
      devicePaths: [],
      net: false,
      memoryBytes: MEMORY_BYTES,
    };
  }

  /** Runs the probe where QEMU would be. */
  async probe(jailArgv: string[]): Promise<Answers> {
    const paths = [this.homePath, this.otherSocketPath, String(this.#port), this.basePath, this.join("run")];
    const argv = [...jailArgv, this.probePath, ...paths, this.sessionPath, String(process.pid)];
    const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "pipe", env: {} });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (child.exitCode !== 0) throw new Error(`the probe ended with ${child.exitCode}: ${err}`);
    return JSON.parse(out) as Answers;
  }

  /** How many were made since it was last asked. They are accepted in order: once our own are, all before them are. */
  async countConnections(): Promise<number> {
    const socket = { data: () => undefined };
    const own = [
      await Bun.connect({ hostname: "127.0.0.1", port: this.#port, socket }),
      await Bun.connect({ unix: this.otherSocketPath, socket }),
    ];
    this.#own = 0;
    for (const each of own) each.end("x");
    await eventually("our own are accepted", () => this.#own === own.length);
    const count = this.#connections - own.length;
    this.#connections = 0;
    return count;
  }

  override [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener.stop(true);
    super[Symbol.dispose]();
  }
}

describeWithVms("the jail", () => {
  let around: Neighbourhood;
  let jail: Jail;

  beforeAll(async () => {
    around = new Neighbourhood();
    jail = await findJail(await findQemu());
  });
  afterAll(() => around[Symbol.dispose]());

  test("is bubblewrap here, and lacks nothing", () => {
    expect(jail.kind).toBe("bwrap");
    expect(jail.gaps).toEqual([]);
  });

  test("leaves a VMM that was taken over its base to read and its own directory to write", async () => {
    const answers = await around.probe(jail.argv(around.request()));
    expect(await around.countConnections()).toBe(0);
    expect(answers).toEqual({
      list_home: "ENOENT",
      list_processes: "ENOENT",
      read_passwords: "ENOENT",
      connect_other_session: "ENOENT",
      connect_network: "ECONNREFUSED",
      exec_shell: "ENOENT",
      new_user_namespace: "ENOSPC",
      signal_server: "ESRCH",
      read_base: "ok",
      write_base: "EROFS",
      create_outside: "EROFS",
      write_root: "EROFS",
      create_in_session: "ok",
      core_bytes: 0,
      file_bytes: 64 * 1_048_576,
      address_bytes: MEMORY_BYTES + 2 * 1024 * 1_048_576,
      descriptors: 128,
      no_new_privs: 1,
      capabilities: 0,
      uid: 65_534,
      pid: 1,
    });
  });

  test("is what stops the same program: without it, it gets everything", async () => {
    const answers = await around.probe([]);
    const names = ["list_home", "list_processes", "read_passwords", "connect_other_session"];
    for (const name of [...names, "connect_network", "exec_shell", "signal_server", "write_base"])
      expect([name, answers[name]]).toEqual([name, "ok"]);
    expect(answers).toMatchObject({ create_outside: "ok", no_new_privs: 0 });
    expect(await around.countConnections()).toBe(2);
  });

  test("shows of a QEMU in a home directory that QEMU only", async () => {
    const prefix = join(around.homePath, "qemu");
    const path = join(prefix, "bin", "qemu");
    mkdirSync(join(prefix, "bin"), { recursive: true });
    copyFileSync((await findQemu()).path, path);
    const root = await minimalRoot({ path, version: "10.0.2", prefix });
    const [strongest] = bubblewrapChoices(Bun.which("bwrap")!, root, []);
    const argv = bubblewrapArgv(strongest!, around.request());
    expect(argv.filter((text) => text.startsWith(around.homePath))).toEqual([path, path]);
    const { exitCode } = Bun.spawnSync([...argv, path, "--version"], { env: {} });
    expect(exitCode).toBe(0);
    expect(await around.probe(argv)).toMatchObject({ exec_shell: "ENOENT", write_base: "EROFS" });
  });

  test("holds a session's QEMU, which has a seccomp filter and no capability", async () => {
    // A pooled clone may be seen between its start and its filter.
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    await server.open();
    const vmms = server.vmms();
    expect(vmms.length).toBeGreaterThan(0);
    for (const { pid } of vmms) expectJailed(pid);
  });

  test("holds an engine's QEMU, which outlives the engine, in the same way", async () => {
    await using engine = await TestEngine.start();
    await engine.vm();
    const [vmm, ...others] = engine.vmms();
    expect(others).toEqual([]);
    expectJailed(vmm!.pid);
    await engine.end("SIGKILL");
    expectJailed(vmm!.pid);
    await engine.start();
  });
});

/** A seccomp filter, no capability, no file system but what QEMU needs, and no network. */
function expectJailed(pid: number): void {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^Seccomp:\t2$/m);
  expect(status).toMatch(/^CapEff:\t0+$/m);
  expect(status).toMatch(/^CapPrm:\t0+$/m);
  expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain("HOME=");
  for (const path of ["/home", "/root", "/proc/1", "/bin/sh"])
    expect(existsSync(`/proc/${pid}/root${path}`)).toBe(false);
  for (const kind of ["net", "pid", "user", "ipc", "mnt"])
    expect(readlinkSync(`/proc/${pid}/ns/${kind}`)).not.toBe(readlinkSync(`/proc/self/ns/${kind}`));
}
