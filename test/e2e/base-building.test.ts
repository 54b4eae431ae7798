import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expectNoLeftovers, expectNoVms, vmsOf } from "../support/leftovers.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import { runExecutable } from "../support/run-executable.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";
import { TestStore } from "../support/test-store.ts";

const BUILD_LIMIT_MS = 110_000;

/** Inode of the memory.bin a VMM maps. */
function mappedMemoryInode(vmmPid: number): number {
  const line = readFileSync(`/proc/${vmmPid}/maps`, "utf8")
    .split("\n")
    .find((text) => text.includes("memory.bin"));
  return Number(line?.trim().split(/\s+/)[4]);
}

describeWithVms("a base that is not there", () => {
  let storeHome: TestHome;
  let store: TestStore;
  const servers: TestServer[] = [];
  const sessions: TestSession[] = [];
  const progress: string[][] = [[], []];

  beforeAll(async () => {
    storeHome = new TestHome();
    store = new TestStore(join(storeHome.path, "store"));
    for (const poolSize of ["0", "1"]) {
      servers.push(await TestServer.start({ IGN_MCP_STORE: store.path, IGN_MCP_POOL: poolSize }));
    }
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    storeHome[Symbol.dispose]();
  });

  /** A build in the store that has come as far as booting a VM. */
  async function startBuild(home: TestHome): Promise<Bun.Subprocess> {
    const child = Bun.spawn([EXECUTABLE_PATH, "base", "build"], {
      env: home.env({ IGN_MCP_STORE: store.path }),
      stdio: ["ignore", "ignore", "ignore"],
    });
    const boots = () => {
      if (child.exitCode !== null) throw new Error(`the build ended with ${child.exitCode}`);
      return vmsOf(child.pid).some((info) => info.name.startsWith("qemu-system"));
    };
    await eventually("the build boots its VM", 20_000, boots);
    return child;
  }

  test("is not left half built by Ctrl-C", async () => {
    using home = new TestHome();
    const build = await startBuild(home);
    const vms = vmsOf(build.pid);
    build.kill("SIGINT");
    expect(await build.exited).toBe(130);
    await expectNoLeftovers(home, vms);
    expect(readdirSync(join(store.path, "snapshots"))).toEqual([]);
  });

  test("leaves no VM when its build is killed, and nothing that stops the next one", async () => {
    using home = new TestHome();
    const build = await startBuild(home);
    const vms = vmsOf(build.pid);
    build.kill("SIGKILL");
    await build.exited;
    await expectNoVms(home, vms);
    expect(existsSync(store.file("manifest.json"))).toBe(false);
    // The next test builds in the same store, over what this one left.
  });

  test("is built by the first session, once for two servers, with progress for both", async () => {
    const opening = servers.map((server, index) =>
      server.open({ timeoutMs: BUILD_LIMIT_MS, onProgress: (message) => progress[index]!.push(message) }),
    );
    sessions.push(...(await Promise.all(opening)));
    for (const session of sessions) expect(await session.output("echo works")).toBe("works\n");
    for (const messages of progress)
      expect(messages.some((text) => text.includes("building the base"))).toBe(true);
    const waited = progress.filter((messages) => messages.some((text) => text.includes("another build")));
    expect(waited).toHaveLength(1);
    const inodes = servers.map((server) => mappedMemoryInode(server.vmms()[0]!.pid));
    expect(inodes).toEqual([1, 2].map(() => statSync(store.file("memory.bin")).ino));
    expect(readdirSync(join(store.path, "snapshots"))).toEqual(["tools-base"]);
  });

  test("is private to its user", () => {
    expect(statSync(store.file("memory.bin")).mode & 0o077).toBe(0);
  });

  test("is replaced by base build --force, old sessions go on, and new ones are clones of the new base", async () => {
    const [server, session] = [servers[0]!, sessions[0]!];
    const oldInode = statSync(store.file("memory.bin")).ino;
    await session.run("echo old > mark");
    const env = server.home.env({ IGN_MCP_STORE: store.path });
    const built = await runExecutable(["base", "build", "--force"], env, BUILD_LIMIT_MS);
    expect(built).toMatchObject({ status: 0, stdout: "" });
    expect(built.stderr).toContain("Base tools-base built");
    const newInode = statSync(store.file("memory.bin")).ino;
    expect(newInode).not.toBe(oldInode);
    expect(await session.output("cat mark; python3 -c 'print(1)'")).toBe("old\n1\n");
    const known = new Set(server.vmms().map((info) => info.pid));
    const fresh = await server.open();
    expect(await fresh.output("echo works")).toBe("works\n");
    const added = server.vmms().filter((info) => !known.has(info.pid));
    expect(added.map((info) => mappedMemoryInode(info.pid))).toEqual([newInode]);
    expect(readdirSync(join(store.path, "snapshots"))).toEqual(["tools-base"]);
  });

  test("and once replaced, no clone of the old one is taken from a pool", async () => {
    const server = servers[1]!;
    const newInode = statSync(store.file("memory.bin")).ino;
    const fresh = await server.open();
    expect(await fresh.output("echo works")).toBe("works\n");
    const ofOldBase = () => server.vmms().filter((info) => mappedMemoryInode(info.pid) !== newInode);
    await eventually("only the old session has the old base", 20_000, () => ofOldBase().length === 1);
    expect(await sessions[1]!.output("echo works")).toBe("works\n");
  });

  test("is not built when a fitting one is there", async () => {
    const before = statSync(store.file("manifest.json")).mtimeMs;
    using home = new TestHome();
    const env = home.env({ IGN_MCP_STORE: store.path });
    expect((await runExecutable(["base", "build"], env, BUILD_LIMIT_MS)).status).toBe(0);
    expect(statSync(store.file("manifest.json")).mtimeMs).toBe(before);
  });
});
