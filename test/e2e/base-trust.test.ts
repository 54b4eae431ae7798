import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithVms, TestHome } from "../support/real-vm.ts";
import { type Ended, runExecutable } from "../support/run-executable.ts";
import { TestServer } from "../support/test-server.ts";
import { cutShort, flipBit, TestStore } from "../support/test-store.ts";

describeWithVms("a base that cannot be trusted is refused", () => {
  let home: TestHome;
  let store: TestStore;

  beforeAll(() => {
    home = new TestHome();
    store = new TestStore(join(home.path, "store"));
    store.copySharedBase();
  });
  afterAll(() => home[Symbol.dispose]());

  const base = (args: string[], extraEnv: Record<string, string> = {}): Promise<Ended> =>
    runExecutable(["base", ...args], home.env({ IGN_MCP_STORE: store.path, ...extraEnv }));

  /** Text of the error with which a server of its own refuses to open a session. */
  async function refusalToOpen(extraEnv: Record<string, string> = {}): Promise<string> {
    await using server = await TestServer.start({
      IGN_MCP_STORE: store.path,
      IGN_MCP_POOL: "0",
      ...extraEnv,
    });
    const answer = await server.client.call("open_session");
    expect(answer.isError).toBe(true);
    expect(server.vmms()).toEqual([]);
    return answer.text;
  }

  function expectRefused(text: string, reason: string): void {
    expect(text).toContain("tools-base");
    expect(text).toContain(reason);
    expect(text).toContain("ignition-mcp base build tools-base");
  }

  test("but the copy it all starts from is sound", async () => {
    const { status, stdout, stderr } = await base(["verify"]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
    expect(stderr).toContain("sound");
    const [listed] = JSON.parse((await base(["ls", "--json"])).stdout) as Record<string, unknown>[];
    expect(listed).toMatchObject({ name: "tools-base", accel: "tcg", usable: true, reason: null });
    expect((await base(["ls"])).stdout).toMatch(/^NAME .*\ntools-base .* usable\n$/s);
  });

  test.each(["memory.bin", "state.bin"])("when one bit of %s is flipped", async (name) => {
    const offset = Math.floor(statSync(store.file(name)).size / 2);
    flipBit(store.file(name), offset);
    try {
      expectRefused(await refusalToOpen(), `${name} is not what its manifest says`);
      const verified = await base(["verify"]);
      expect(verified.status).toBe(1);
      expectRefused(verified.stdout, name);
      expect((await base(["ls"])).stdout).toContain("is damaged");
    } finally {
      flipBit(store.file(name), offset);
    }
    expect((await base(["verify"])).status).toBe(0);
  });

  test("when its memory is cut short", async () => {
    const mend = cutShort(store.file("memory.bin"), 4096);
    try {
      expectRefused(await refusalToOpen(), "memory.bin is not what its manifest says");
    } finally {
      mend();
    }
  });

  test("when its manifest is no manifest", async () => {
    const path = store.file("manifest.json");
    const manifest = readFileSync(path, "utf8");
    writeFileSync(path, manifest.slice(0, 100));
    try {
      expectRefused(await refusalToOpen(), "manifest");
    } finally {
      writeFileSync(path, manifest);
    }
  });

  test("when a file of it is gone", async () => {
    const path = store.file("state.bin");
    renameSync(path, `${path}.away`);
    try {
      expectRefused(await refusalToOpen(), "state.bin");
    } finally {
      renameSync(`${path}.away`, path);
    }
  });

  test.each([
    ["memory", { IGN_MCP_MEM: "256" }, "512 MiB of memory, IGN_MCP_MEM asks for 256 MiB"],
    ["processors", { IGN_MCP_CPUS: "2" }, "1 CPUs, IGN_MCP_CPUS asks for 2"],
    ["acceleration", { IGN_MCP_ACCEL: "kvm" }, "runs under tcg, IGN_MCP_ACCEL asks for kvm"],
  ])("when other %s is asked for", async (_, env, reason) => {
    expectRefused(await refusalToOpen(env), reason);
  });

  test("when the image is missing, which is said with where it was looked for", async () => {
    const text = await refusalToOpen({ IGN_MCP_KERNEL: join(home.path, "nowhere/vmlinuz") });
    expect(text).toContain(join(home.path, "nowhere"));
    expect(text).toContain("scripts/build-image");
  });

  test("and the server that refused it takes it once it is mended", async () => {
    await using server = await TestServer.start({ IGN_MCP_STORE: store.path, IGN_MCP_POOL: "0" });
    flipBit(store.file("state.bin"), 1000);
    try {
      expect((await server.client.call("open_session")).isError).toBe(true);
    } finally {
      flipBit(store.file("state.bin"), 1000);
    }
    expect(await (await server.open()).output("echo mended")).toBe("mended\n");
  });

  test("base rm deletes one, and a base that is not there is an error that names it", async () => {
    expect((await base(["rm", "tools-base"])).status).toBe(0);
    for (const command of ["rm", "verify"]) {
      const { status, stderr } = await base([command, "tools-base"]);
      expect(status).toBe(1);
      expect(stderr).toContain("there is no base 'tools-base'");
    }
    expect(await base(["ls", "--json"])).toMatchObject({ status: 0, stdout: "[]\n" });
  });
});
